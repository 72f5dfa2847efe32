// Batch normalization forward: statistics (reads src), then the normalization (reads src and addend, writes dst).
#include "trireme/backend/cuda/batch_norm_tiles.cuh"

namespace trireme::cuda {
namespace {

// Deviations from a pivot, the channel's first value, avoid cancellation if the mean is large.
struct FinishStatistics {
  double count;
  float* mean;
  float* variance;

  __device__ void operator()(std::int64_t channel, float pivot, double sum, double squares) const {
    const double shift = sum / count;
    mean[channel] = static_cast<float>(pivot + shift);
    variance[channel] = static_cast<float>(fmax(squares / count - shift * shift, 0.0));
  }
};

template <int N>
__device__ inline void add_deviations(const float (&values)[N], const float (&pivot)[N], Sums<N>& sums) {
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float deviation = values[i] - pivot[i];
    sums.first[i] += deviation;
    sums.second[i] = fmaf(deviation, deviation, sums.second[i]);
  }
}

template <typename Element, int N>
__global__ __launch_bounds__(kStatisticsThreads, 1) void sum_statistics(Tiles tiles, const Element* src,
                                                                        float2* partials, unsigned* counters,
                                                                        FinishStatistics finish) {
  constexpr int kUnroll = N == 1 ? 8 : 4;
  __shared__ BlockMemory<kStatisticsThreads, N> told;
  const Position at(tiles);
  const std::int64_t row_elements = static_cast<std::int64_t>(tiles.packs) * N;
  Sums<N> sums;
  if (at.active) {
    float pivot[N];
    const Pack<Element, N> first = load_pack<Element, N>(src + at.pack * N);
    unpack(first, pivot);
    const std::int64_t step = Position::row_step(tiles);
    std::int64_t row = at.first_row(tiles);
    const Element* from = src + row * row_elements + at.pack * N;
    for (; row < tiles.rows; row += kUnroll * step, from += kUnroll * step * row_elements) {
      Pack<Element, N> packs[kUnroll];
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        packs[u] = first;  // adds nothing
        if (row + u * step < tiles.rows) packs[u] = load_pack<Element, N>(from + u * step * row_elements);
      }
#pragma unroll
      for (int u = 0; u < kUnroll; ++u) {
        float values[N];
        unpack(packs[u], values);
        add_deviations(values, pivot, sums);
      }
    }
  }
  sum_rows(told, tiles, at, sums);
  if (!is_last_of_tile(sums, tiles, at, partials, counters)) return;
  sum_blocks(told, tiles, at, partials,
             [&](int channel, double sum, double squares) { finish(channel, to_float(src[channel]), sum, squares); });
}

// One block per channel.
template <typename Element, int N>
__global__ __launch_bounds__(kStatisticsThreads, 1) void sum_plane_statistics(Planes planes, const Element* src,
                                                                              FinishStatistics finish) {
  const std::int64_t channel = blockIdx.x;
  const PlanePosition at(planes);
  const std::int64_t plane_elements = static_cast<std::int64_t>(planes.packs) * N;
  float pivot[N];
#pragma unroll
  for (int i = 0; i < N; ++i) pivot[i] = to_float(src[channel * plane_elements]);
  Sums<N> sums;
  for (std::int64_t n = at.active ? at.y : planes.batch; n < planes.batch; n += planes.height) {
    const Element* plane = src + (n * planes.channels + channel) * plane_elements;
#pragma unroll 4
    for (int pack = at.x; pack < planes.packs; pack += planes.width) {
      float values[N];
      unpack(load_pack<Element, N>(plane + static_cast<std::int64_t>(pack) * N), values);
      add_deviations(values, pivot, sums);
    }
  }
  const float2 total = sum_block<kStatisticsThreads>(sums);
  if (threadIdx.x == 0) finish(channel, pivot[0], total.x, total.y);
}

template <typename Element, int N, bool kAdd>
__device__ inline Pack<Element, N> normalized(const Pack<Element, N>& src, const Pack<Element, N>& addend,
                                              const float (&scale)[N], const float (&shift)[N], bool relu) {
  float values[N], added[N];
  unpack(src, values);
  if constexpr (kAdd) unpack(addend, added);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float value = Affine::at(values[i], scale[i], shift[i]);
    if constexpr (kAdd) value += added[i];
    values[i] = relu && value < 0 ? 0 : value;
  }
  return pack_of<Element, N>(values);
}

template <typename Element, int N, bool kAdd>
__global__ __launch_bounds__(kApplyThreads, kApplyBlocks) void normalize(Tiles tiles, const Element* src,
                                                                         const Element* addend, Element* dst,
                                                                         Parameters parameters, bool relu) {
  constexpr int kUnroll = kAdd ? 2 : 4;
  const Position at(tiles);
  if (!at.active) return;
  const int channel = at.pack * N;
  float scale[N], shift[N];
  parameters.load(channel, scale, shift);
  const std::int64_t row_elements = static_cast<std::int64_t>(tiles.packs) * N;
  const std::int64_t step = Position::row_step(tiles);
  std::int64_t row = tiles.rows - 1 - at.first_row(tiles);
  std::int64_t offset = row * row_elements + channel;
  for (; row >= 0; row -= kUnroll * step, offset -= kUnroll * step * row_elements) {
    Pack<Element, N> packs[kUnroll], addends[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row - u * step < 0) continue;
      packs[u] = load_last<Element, N>(src + offset - u * step * row_elements);
      if constexpr (kAdd) addends[u] = load_last<Element, N>(addend + offset - u * step * row_elements);
    }
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      if (row - u * step < 0) continue;
      store_pack(dst + offset - u * step * row_elements,
                 normalized<Element, N, kAdd>(packs[u], addends[u], scale, shift, relu));
    }
  }
}

template <typename Element, int N, bool kAdd>
__global__ __launch_bounds__(kApplyThreads) void normalize_planes(Planes planes, const Element* src,
                                                                  const Element* addend, Element* dst,
                                                                  Parameters parameters, bool relu) {
  const PlanePosition at(planes);
  const std::int64_t all = planes.batch * planes.channels;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * planes.height;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * planes.height + at.y;
  for (std::int64_t plane = at.active ? first : all; plane < all; plane += step) {
    float scale[N], shift[N];
    parameters.repeat(plane % planes.channels, scale, shift);
#pragma unroll 4
    for (int pack = at.x; pack < planes.packs; pack += planes.width) {
      const std::int64_t offset = (plane * planes.packs + pack) * N;
      Pack<Element, N> addends;
      if constexpr (kAdd) addends = load_last<Element, N>(addend + offset);
      store_pack(dst + offset,
                 normalized<Element, N, kAdd>(load_last<Element, N>(src + offset), addends, scale, shift, relu));
    }
  }
}

// dst = activation(gamma·(src − mean)/sqrt(variance + epsilon) + beta + addend). dst may be src or addend.
struct NormForward {
  const void* src;
  const float* gamma;  // null: 1
  const float* beta;
  const void* addend;  // may be null
  void* dst;
  float epsilon;
  bool relu;
};

template <typename Element, int N, bool kAdd>
void launch_normalize(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments,
                      const Parameters& parameters) {
  const auto* src = static_cast<const Element*>(arguments.src);
  const auto* addend = static_cast<const Element*>(arguments.addend);
  auto* dst = static_cast<Element*>(arguments.dst);
  const int blocks = place.multiprocessors * kApplyBlocks;
  if (shape.channels_last) {
    const Tiles tiles = make_tiles(shape.per_channel(), shape.channels / N, kApplyThreads, kApplyThreads, blocks);
    normalize<Element, N, kAdd>
        <<<tiles.grid(), kApplyThreads, 0, place.stream>>>(tiles, src, addend, dst, parameters, arguments.relu);
  } else {
    const Planes planes = make_planes(shape, N, kApplyThreads);
    const int grid = blocks_for(shape.batch * shape.channels, planes.height, 2 * blocks);
    normalize_planes<Element, N, kAdd>
        <<<grid, kApplyThreads, 0, place.stream>>>(planes, src, addend, dst, parameters, arguments.relu);
  }
  check(cudaGetLastError(), "batch_norm: the normalisation cannot be started");
}

// Uses the given statistics; needs no counters.
void launch_inference(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments,
                      const float* mean, const float* variance) {
  const Parameters parameters{mean, variance, arguments.gamma, arguments.beta, arguments.epsilon};
  with_pack(shape, [&]<typename Element, int N>(Element, std::integral_constant<int, N>) {
    if (arguments.addend != nullptr) {
      launch_normalize<Element, N, true>(place, shape, arguments, parameters);
    } else {
      launch_normalize<Element, N, false>(place, shape, arguments, parameters);
    }
  });
}

// Computes the statistics of src and writes them.
void launch_training(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments, float* mean,
                     float* variance) {
  const FinishStatistics finish{static_cast<double>(shape.per_channel()), mean, variance};
  with_pack(shape, [&]<typename Element, int N>(Element, std::integral_constant<int, N>) {
    const auto* src = static_cast<const Element*>(arguments.src);
    if (shape.channels_last) {
      const Tiles tiles = summing_tiles(shape, N, kStatisticsThreads, place.multiprocessors);
      sum_statistics<Element, N><<<tiles.grid(), kStatisticsThreads, 0, place.stream>>>(
          tiles, src, static_cast<float2*>(place.scratch), place.counters, finish);
    } else {
      sum_plane_statistics<Element, N><<<static_cast<unsigned>(shape.channels), kStatisticsThreads, 0, place.stream>>>(
          make_planes(shape, N, kStatisticsThreads), src, finish);
    }
  });
  check(cudaGetLastError(), "batch_norm: the statistics cannot be started");
  launch_inference(place, shape, arguments, mean, variance);
}

// statistics: the number of inputs between beta and the addend.
template <typename Operation>
NormForward forward_arguments(const Operation& operation, const Operands& operands, std::size_t statistics) {
  const std::size_t beta = operation.gamma ? 2 : 1;
  return {.src = operands.input<void>(0),
          .gamma = operation.gamma ? operands.input(1) : nullptr,
          .beta = operands.input(beta),
          .addend = operation.add ? operands.input<void>(beta + 1 + statistics) : nullptr,
          .dst = operands.output<void>(0),
          .epsilon = operation.epsilon,
          .relu = operation.activation == op::Activation::relu};
}

// dst may overwrite the addend or src.
void allow_in_place(bool add, const KernelRequest& request, KernelChoice& choice) {
  if (add) choice.in_place.emplace_back(static_cast<int>(request.inputs.size()) - 1, 0);
  choice.in_place.emplace_back(0, 0);
}

}  // namespace

std::int64_t batch_norm_scratch_bytes(const NormShape& shape, int multiprocessors) {
  return partial_sum_bytes(shape, multiprocessors) + 2 * shape.channels * static_cast<int>(sizeof(float));
}

std::int64_t batch_norm_counters(const NormShape& shape) {
  return shape.channels_last ? most_summing_tiles(shape, 1).tiles : 0;
}

KernelChoice make(const op::BatchNorm& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        launch_training(place, shape, forward_arguments(operation, operands, 0), operands.output(1),
                        operands.output(2));
      });
  allow_in_place(operation.add, request, choice);
  return choice;
}

KernelChoice make(const op::BatchNormInference& operation, const KernelRequest& request, CudaDevice& device) {
  KernelChoice choice = norm_kernel(
      request, device, [operation](const NormWorkspace& place, const NormShape& shape, const Operands& operands) {
        const std::size_t mean = operation.gamma ? 3 : 2;
        launch_inference(place, shape, forward_arguments(operation, operands, 2), operands.input(mean),
                         operands.input(mean + 1));
      });
  allow_in_place(operation.add, request, choice);
  return choice;
}

}  // namespace trireme::cuda
