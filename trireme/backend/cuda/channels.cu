#include <limits>

#include "trireme/backend/cuda/channels_kernels.hpp"
#include "trireme/backend/cuda/elements.cuh"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

// One pack per iteration: neighboring channels (inner is 1), or one channel (inner is a multiple of the pack).
template <typename Element, int Width, typename Index>
__global__ void __launch_bounds__(kThreads)
    apply_epilogue(Index packs, Index channel_steps, Index inner_steps, const Element* src,
                   const float* __restrict__ bias, const Element* addend, Element* dst, bool relu) {
  const bool along_channels = inner_steps == 0;
  for (Index pack = blockIdx.x * static_cast<Index>(kThreads) + threadIdx.x; pack < packs;
       pack += static_cast<Index>(kThreads) * gridDim.x) {
    const std::int64_t at = static_cast<std::int64_t>(pack) * Width;
    const Pack<Element, Width> values = load_pack<Element, Width>(src + at);
    float results[Width];
#pragma unroll
    for (int i = 0; i < Width; ++i) results[i] = to_float(values.values[i]);
    if (bias != nullptr) {
      const Index step = along_channels ? pack % channel_steps : pack / inner_steps % channel_steps;
      const std::int64_t channel = along_channels ? static_cast<std::int64_t>(step) * Width : step;
#pragma unroll
      for (int i = 0; i < Width; ++i) results[i] += bias[along_channels ? channel + i : channel];
    }
    if (addend != nullptr) {
      const Pack<Element, Width> added = load_pack<Element, Width>(addend + at);
#pragma unroll
      for (int i = 0; i < Width; ++i) results[i] += to_float(added.values[i]);
    }
    Pack<Element, Width> out;
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      // NaN stays NaN.
      out.values[i] = from_float<Element>(relu && results[i] < 0 ? 0.0f : results[i]);
    }
    store_pack<Element, Width>(dst + at, out);
  }
}

template <typename Element, int Width, typename Index>
void launch_epilogue_as(const CudaDevice& device, const ChannelLoops& loops, const Epilogue& epilogue) {
  const bool along_channels = loops.inner == 1;
  const std::int64_t packs = loops.elements() / Width;
  const int blocks = blocks_for(packs, kThreads, kBlocksPerMultiprocessor * device.multiprocessors());
  apply_epilogue<Element, Width, Index><<<blocks, kThreads, 0, device.stream()>>>(
      static_cast<Index>(packs), static_cast<Index>(along_channels ? loops.channels / Width : loops.channels),
      static_cast<Index>(along_channels ? 0 : loops.inner / Width), static_cast<const Element*>(epilogue.src),
      epilogue.bias, static_cast<const Element*>(epilogue.addend), static_cast<Element*>(epilogue.dst), epilogue.relu);
}

// For summing partial sums.
constexpr int kChannelsPerBlock = 32, kRowsPerBlock = 8;

// The number of chunks of the outer axis, which are summed in parallel.
std::int64_t chunks_of(const ChannelLoops& loops) {
  constexpr std::int64_t kMostChunks = 512;
  constexpr std::int64_t kRows = 64, kElements = 16384;  // worth a block: rows of many channels, or elements of one
  const std::int64_t wanted = loops.inner == 1 ? loops.outer / kRows : loops.outer * loops.inner / kElements;
  const std::int64_t most = loops.outer < kMostChunks ? loops.outer : kMostChunks;
  return wanted < 1 ? 1 : (wanted < most ? wanted : most);
}

__host__ __device__ inline std::int64_t chunk_begin(std::int64_t outer, std::int64_t chunks, std::int64_t chunk) {
  return outer * chunk / chunks;
}

// partials[chunk][channel] if inner == 1: threadIdx.x over channels, Width each; threadIdx.y over rows of the chunk.
template <typename Element, int Width>
__global__ void __launch_bounds__(kThreads)
    sum_rows(std::int64_t outer, std::int64_t channels, const Element* __restrict__ src, float* __restrict__ partials) {
  __shared__ float shared[kThreads * Width];
  const int width = static_cast<int>(blockDim.x) * Width;
  const std::int64_t block_first = static_cast<std::int64_t>(blockIdx.x) * width;
  const std::int64_t first = block_first + threadIdx.x * Width;
  const std::int64_t end = chunk_begin(outer, gridDim.y, blockIdx.y + 1);
  float sums[Width] = {};
  if (first < channels) {
#pragma unroll 4
    for (std::int64_t row = chunk_begin(outer, gridDim.y, blockIdx.y) + threadIdx.y; row < end; row += blockDim.y) {
      const Pack<Element, Width> values = load_pack<Element, Width>(src + row * channels + first);
#pragma unroll
      for (int i = 0; i < Width; ++i) sums[i] += to_float(values.values[i]);
    }
  }
#pragma unroll
  for (int i = 0; i < Width; ++i) shared[threadIdx.y * width + threadIdx.x * Width + i] = sums[i];
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x); i < width; i += kThreads) {
    if (block_first + i >= channels) continue;
    float sum = 0;
    for (unsigned row = 0; row < blockDim.y; ++row) sum += shared[row * width + i];
    partials[blockIdx.y * channels + block_first + i] = sum;
  }
}

// partials[chunk][channel] if inner > 1: one block per channel and chunk.
template <typename Element>
__global__ void __launch_bounds__(kThreads) sum_planes(std::int64_t outer, std::int64_t channels, std::int64_t inner,
                                                       const Element* __restrict__ src, float* __restrict__ partials) {
  const std::int64_t channel = blockIdx.x;
  float sum = 0;
  for (std::int64_t n = chunk_begin(outer, gridDim.y, blockIdx.y); n < chunk_begin(outer, gridDim.y, blockIdx.y + 1);
       ++n) {
    const Element* const plane = src + (n * channels + channel) * inner;
    for (std::int64_t i = threadIdx.x; i < inner; i += kThreads) sum += to_float(plane[i]);
  }
  __shared__ float shared[kThreads / 32];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  float total = 0;
  for (const float part : shared) total += part;
  partials[blockIdx.y * channels + channel] = total;
}

__global__ void __launch_bounds__(kChannelsPerBlock* kRowsPerBlock)
    add_partials(std::int64_t chunks, std::int64_t channels, const float* __restrict__ partials,
                 float* __restrict__ sums) {
  __shared__ float shared[kRowsPerBlock][kChannelsPerBlock];
  const std::int64_t channel = blockIdx.x * static_cast<std::int64_t>(kChannelsPerBlock) + threadIdx.x;
  float sum = 0;
  if (channel < channels) {
    for (std::int64_t chunk = threadIdx.y; chunk < chunks; chunk += kRowsPerBlock)
      sum += partials[chunk * channels + channel];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || channel >= channels) return;
  float total = 0;
  for (int row = 0; row < kRowsPerBlock; ++row) total += shared[row][threadIdx.x];
  sums[channel] = total;
}

template <typename Element, int Width>
void launch_sum_rows(const CudaDevice& device, const ChannelLoops& loops, const Element* src, float* partials) {
  unsigned across = 1;  // threads over the channels: a power of two, so that all threads of a block have work
  while (across < 32 && across * Width < loops.channels) across *= 2;
  const std::int64_t per_block = across * Width;
  const dim3 grid(static_cast<unsigned>((loops.channels + per_block - 1) / per_block),
                  static_cast<unsigned>(chunks_of(loops)));
  sum_rows<Element, Width>
      <<<grid, dim3(across, kThreads / across), 0, device.stream()>>>(loops.outer, loops.channels, src, partials);
}

}  // namespace

void launch_epilogue(const CudaDevice& device, const ChannelLoops& loops, DataType type, const Epilogue& epilogue) {
  if (loops.elements() == 0) return;
  with_element(type, [&]<typename Element>(Element) {
    constexpr int kWidth = kPack<Element>;
    const bool small = loops.elements() < std::numeric_limits<std::int32_t>::max() / 2;
    const bool whole = (loops.inner == 1 ? loops.channels : loops.inner) % kWidth == 0;
    if (small && whole) {
      launch_epilogue_as<Element, kWidth, std::uint32_t>(device, loops, epilogue);
    } else if (whole) {
      launch_epilogue_as<Element, kWidth, std::uint64_t>(device, loops, epilogue);
    } else {
      launch_epilogue_as<Element, 1, std::uint64_t>(device, loops, epilogue);
    }
  });
  check(cudaGetLastError(), "adding a bias");
}

std::int64_t channel_sums_scratch_bytes(const ChannelLoops& loops) {
  return chunks_of(loops) * loops.channels * static_cast<std::int64_t>(sizeof(float));
}

void launch_channel_sums(const CudaDevice& device, const ChannelLoops& loops, DataType type, const void* src,
                         float* sums, float* scratch) {
  if (loops.channels == 0) return;
  const std::int64_t chunks = chunks_of(loops);
  with_element(type, [&]<typename Element>(Element) {
    const auto* const values = static_cast<const Element*>(src);
    if (loops.inner > 1) {
      const dim3 grid(static_cast<unsigned>(loops.channels), static_cast<unsigned>(chunks));
      sum_planes<<<grid, kThreads, 0, device.stream()>>>(loops.outer, loops.channels, loops.inner, values, scratch);
    } else if (loops.channels % kPack<Element> == 0) {
      launch_sum_rows<Element, kPack<Element>>(device, loops, values, scratch);
    } else {
      launch_sum_rows<Element, 1>(device, loops, values, scratch);
    }
  });
  const auto blocks = static_cast<unsigned>((loops.channels + kChannelsPerBlock - 1) / kChannelsPerBlock);
  add_partials<<<blocks, dim3(kChannelsPerBlock, kRowsPerBlock), 0, device.stream()>>>(chunks, loops.channels, scratch,
                                                                                       sums);
  check(cudaGetLastError(), "sums of channels");
}

}  // namespace trireme::cuda
