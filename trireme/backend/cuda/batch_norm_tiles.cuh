// How batch normalization kernels divide a tensor over blocks and threads and combine sums per channel.
//
// Channels last, the tensor is a matrix of rows x packs; a pack is the channels that a thread reads at once and keeps
// for all its rows. A block covers a tile of neighboring packs and as many rows at a time as it has threads for. Blocks
// advance together, forward for the sums and backward in the second pass, which reads what is still in the L2 cache. In
// plain order the rows are planes (one sample, one channel): a block sums the planes of one channel, and the second
// pass takes all planes in order.
//
// Sums are f32 in a thread and in a block, over a few hundred terms each, and f64 across blocks. The order of additions
// is fixed: results repeat to the bit.
#pragma once

#include <type_traits>

#include "trireme/backend/cuda/batch_norm.hpp"
#include "trireme/backend/cuda/elements.cuh"

namespace trireme::cuda {

// For a pass that sums: one block per multiprocessor, to leave few partial sums. Statistics use 1,024 threads of up to
// 64 registers; gradients keep more per channel and use half the threads.
inline constexpr int kStatisticsThreads = 1024;
inline constexpr int kGradientThreads = 512;
// Of a tile's row. Narrow tiles have fewer partial sums each, wide ones read longer stretches of memory.
inline constexpr int kTileBytes = 256;
// For the second pass.
inline constexpr int kApplyThreads = 256;
inline constexpr int kApplyBlocks = 4;  // per multiprocessor
inline constexpr int kGradientApplyBlocks = 3;

struct Tiles {
  std::int64_t rows;
  int packs;   // of a row
  int width;   // packs of a tile: threads side by side
  int tiles;   // of a row
  int height;  // rows that a block covers at a time
  int blocks;  // sharing a tile
  int grid() const { return tiles * blocks; }
};

inline int ceil_div(std::int64_t a, std::int64_t b) { return static_cast<int>((a + b - 1) / b); }

inline Tiles make_tiles(std::int64_t rows, std::int64_t packs, int most_packs, int threads, int blocks) {
  Tiles tiles{.rows = rows, .packs = static_cast<int>(packs), .width = 0, .tiles = 0, .height = 0, .blocks = 0};
  tiles.width = ceil_div(packs, ceil_div(packs, most_packs));  // tiles of about equal width
  tiles.tiles = ceil_div(packs, tiles.width);
  tiles.height = threads / tiles.width;
  const int share = blocks / tiles.tiles;
  tiles.blocks = blocks_for(rows, tiles.height, share > 0 ? share : 1);
  return tiles;
}

// The tiles of a pass that sums rows of `channels` elements, `pack` at a time.
inline Tiles summing_tiles(const NormShape& shape, int pack, int threads, int multiprocessors) {
  const int most = kTileBytes / (pack * static_cast<int>(size_of(shape.type)));
  return make_tiles(shape.per_channel(), shape.channels / pack, most, threads, multiprocessors);
}

// Elements that a thread takes at a time.
inline int pack_size(const NormShape& shape) {
  const int most = 16 / static_cast<int>(size_of(shape.type));
  return (shape.channels_last ? shape.channels : shape.inner) % most == 0 ? most : 1;
}

// The tiles with the most blocks: fewer threads cover fewer rows at a time.
inline Tiles most_summing_tiles(const NormShape& shape, int multiprocessors) {
  return summing_tiles(shape, pack_size(shape), kGradientThreads, multiprocessors);
}

// For the partial sums that blocks leave for the last one.
inline std::int64_t partial_sum_bytes(const NormShape& shape, int multiprocessors) {
  if (!shape.channels_last) return 0;
  const Tiles tiles = most_summing_tiles(shape, multiprocessors);
  return static_cast<std::int64_t>(tiles.grid()) * tiles.width * pack_size(shape) * static_cast<int>(sizeof(float2));
}

struct Position {
  int x, y;         // in the tile
  int pack;         // of the row
  int tile, block;  // block: among those that share the tile
  bool active;

  __device__ explicit Position(const Tiles& tiles)
      : x(static_cast<int>(threadIdx.x) % tiles.width),
        y(static_cast<int>(threadIdx.x) / tiles.width),
        tile(static_cast<int>(blockIdx.x) % tiles.tiles),
        block(static_cast<int>(blockIdx.x) / tiles.tiles) {
    pack = tile * tiles.width + x;
    active = y < tiles.height && pack < tiles.packs;
  }
  __device__ std::int64_t first_row(const Tiles& tiles) const {
    return static_cast<std::int64_t>(block) * tiles.height + y;
  }
  __device__ static std::int64_t row_step(const Tiles& tiles) {
    return static_cast<std::int64_t>(tiles.blocks) * tiles.height;
  }
};

template <typename Element, int N>
__device__ inline void unpack(const Pack<Element, N>& pack, float (&values)[N]) {
  if constexpr (sizeof(Element) == 2 && N % 2 == 0) {
    const auto* pairs = reinterpret_cast<const PairOf<Element>*>(&pack);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) {
      const float2 two = to_float2(pairs[i]);
      values[2 * i] = two.x;
      values[2 * i + 1] = two.y;
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) values[i] = to_float(pack.values[i]);
  }
}

template <typename Element, int N>
__device__ inline Pack<Element, N> pack_of(const float (&values)[N]) {
  Pack<Element, N> pack;
  if constexpr (sizeof(Element) == 2 && N % 2 == 0) {
    auto* pairs = reinterpret_cast<PairOf<Element>*>(&pack);
#pragma unroll
    for (int i = 0; i < N / 2; ++i) pairs[i] = from_float2<PairOf<Element>>(values[2 * i], values[2 * i + 1]);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) pack.values[i] = from_float<Element>(values[i]);
  }
  return pack;
}

// Loads a pack that is not read again soon, without pushing others out of the caches.
template <typename Element, int N>
__device__ inline Pack<Element, N> load_last(const Element* from) {
  if constexpr (sizeof(Element) * N == 16) {
    const uint4 bits = __ldcs(reinterpret_cast<const uint4*>(from));
    return *reinterpret_cast<const Pack<Element, N>*>(&bits);
  } else {
    return load_pack<Element, N>(from);
  }
}

// Loads a pack's channels from an array with one value per channel; `otherwise` if there is none.
template <int N>
__device__ inline void load_channels(const float* from, int channel, float (&values)[N], float otherwise) {
  constexpr int kAtOnce = N % 4 == 0 ? 4 : 1;
#pragma unroll
  for (int i = 0; i < N; i += kAtOnce) {
    const auto some = from == nullptr ? Pack<float, kAtOnce>{} : load_pack<float, kAtOnce>(from + channel + i);
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) values[i + j] = from == nullptr ? otherwise : some.values[j];
  }
}

template <int N>
struct Sums {
  float first[N] = {};
  float second[N] = {};
};

// Shared memory of a block: for the sums of its rows, then, in the last block, for sums over blocks.
template <int kThreads, int N>
union BlockMemory {
  float rows[2 * N][kThreads / 2];
  double2 blocks[kThreads];
};

// Sums over the rows of a block; threads with y == 0 get the result. Called by all threads.
template <int kThreads, int N>
__device__ inline void sum_rows(BlockMemory<kThreads, N>& told, const Tiles& tiles, const Position& at, Sums<N>& sums) {
  for (int left = tiles.height; left > 1;) {
    const int half = (left + 1) / 2;
    if (at.y >= half && at.y < left) {
      const int slot = (at.y - half) * tiles.width + at.x;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        told.rows[i][slot] = sums.first[i];
        told.rows[N + i][slot] = sums.second[i];
      }
    }
    __syncthreads();
    if (at.y + half < left) {
      const int slot = at.y * tiles.width + at.x;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        sums.first[i] += told.rows[i][slot];
        sums.second[i] += told.rows[N + i][slot];
      }
    }
    __syncthreads();
    left = half;
  }
}

// Publishes a block's sums; true in the last block of a tile, which can then read all others. Called by all threads.
template <int N>
__device__ inline bool is_last_of_tile(const Sums<N>& sums, const Tiles& tiles, const Position& at, float2* partials,
                                       unsigned* counters) {
  if (at.y == 0) {
    float2* mine =
        partials + (static_cast<std::int64_t>(at.tile) * tiles.blocks + at.block) * tiles.width * N + at.x * N;
#pragma unroll
    for (int i = 0; i < N; ++i) mine[i] = make_float2(sums.first[i], sums.second[i]);
    __threadfence();
  }
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) {
    last = atomicAdd(&counters[at.tile], 1u) == static_cast<unsigned>(tiles.blocks) - 1;
    if (last) counters[at.tile] = 0;  // for the next run
  }
  __syncthreads();
  if (last) __threadfence();
  return last;
}

// Calls finish(channel, sum of first, sum of second) for each channel of the tile, with totals over all blocks.
template <int kThreads, int N, typename Finish>
__device__ inline void sum_blocks(BlockMemory<kThreads, N>& told, const Tiles& tiles, const Position& at,
                                  const float2* partials, Finish finish) {
  const int span = tiles.width * N;
  const int parts = kThreads / span;
  const int column = static_cast<int>(threadIdx.x) % span;
  const int part = static_cast<int>(threadIdx.x) / span;
  const float2* from = partials + static_cast<std::int64_t>(at.tile) * tiles.blocks * span + column;
  double2 sum = make_double2(0, 0);
  if (part < parts) {
#pragma unroll 8
    for (int block = part; block < tiles.blocks; block += parts) {
      const float2 partial = __ldcg(from + block * span);
      sum.x += partial.x;
      sum.y += partial.y;
    }
  }
  told.blocks[threadIdx.x] = sum;
  __syncthreads();
  const int channel = at.tile * span + column;
  if (part != 0 || channel >= tiles.packs * N) return;
  for (int other = 1; other < parts; ++other) {
    sum.x += told.blocks[other * span + column].x;
    sum.y += told.blocks[other * span + column].y;
  }
  finish(channel, sum.x, sum.y);
}

// One channel in plain order: the planes of its samples, shared by the threads of one block.
struct Planes {
  std::int64_t batch, channels;
  int packs;   // of a plane
  int width;   // threads along a plane
  int height;  // planes at a time
};

inline Planes make_planes(const NormShape& shape, int pack, int threads) {
  Planes planes{.batch = shape.batch,
                .channels = shape.channels,
                .packs = static_cast<int>(shape.inner / pack),
                .width = 0,
                .height = 0};
  planes.width = planes.packs < threads ? planes.packs : threads;
  planes.height = threads / planes.width;
  return planes;
}

struct PlanePosition {
  int x, y;
  bool active;

  __device__ explicit PlanePosition(const Planes& planes)
      : x(static_cast<int>(threadIdx.x) % planes.width), y(static_cast<int>(threadIdx.x) / planes.width) {
    active = y < planes.height;
  }
};

// The two sums over a block, returned to all its threads. Called by all of them.
template <int kThreads, int N>
__device__ inline float2 sum_block(const Sums<N>& sums) {
  __shared__ float2 told[kThreads / 32];
  float2 own = make_float2(0, 0);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    own.x += sums.first[i];
    own.y += sums.second[i];
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const float2 of_warp = make_float2(warp_sum(own.x), warp_sum(own.y));
  if (lane == 0) told[warp] = of_warp;
  __syncthreads();
  const float2 mine = lane < kThreads / 32 ? told[lane] : make_float2(0, 0);
  return make_float2(warp_sum(mine.x), warp_sum(mine.y));
}

// The forward pass's factor and summand, in arithmetic that no optimization changes: the backward pass repeats it to
// find what the activation let through.
struct Affine {
  float scale, shift;

  __device__ Affine(float mean, float variance, float epsilon, float gamma, float beta) {
    scale = __fmul_rn(gamma, __frsqrt_rn(__fadd_rn(variance, epsilon)));
    shift = __fmaf_rn(-mean, scale, beta);
  }
  __device__ static float at(float value, float scale, float shift) { return __fmaf_rn(value, scale, shift); }
};

struct Parameters {
  const float* mean;
  const float* variance;
  const float* gamma;  // null: 1
  const float* beta;   // null: 0
  float epsilon;

  // For the channels of a pack.
  template <int N>
  __device__ void load(int channel, float (&scale)[N], float (&shift)[N]) const {
    float means[N], variances[N];
    load_channels(mean, channel, means, 0);
    load_channels(variance, channel, variances, 0);
    load_channels(gamma, channel, scale, 1);
    load_channels(beta, channel, shift, 0);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Affine affine(means[i], variances[i], epsilon, scale[i], shift[i]);
      scale[i] = affine.scale;
      shift[i] = affine.shift;
    }
  }

  // One channel for all of a pack: neighbors in a plane.
  template <int N>
  __device__ void repeat(std::int64_t channel, float (&scale)[N], float (&shift)[N]) const {
    const Affine affine(mean[channel], variance[channel], epsilon, gamma == nullptr ? 1.0f : gamma[channel],
                        beta == nullptr ? 0.0f : beta[channel]);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      scale[i] = affine.scale;
      shift[i] = affine.shift;
    }
  }
};

// function(Element{}, std::integral_constant<int, N>{}): N elements at a time if all rows are whole packs, else 1.
template <typename Function>
void with_pack(const NormShape& shape, Function function) {
  with_element(shape.type, [&]<typename Element>(Element) {
    if (pack_size(shape) == kPack<Element>) {
      function(Element{}, std::integral_constant<int, kPack<Element>>{});
    } else {
      function(Element{}, std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace trireme::cuda
