#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/elementwise_kernels.hpp"
#include "trireme/backend/cuda/philox.cuh"
#include "trireme/backend/cuda/strided.cuh"

namespace trireme::cuda {
namespace {

// DropoutMask of trireme/backend/dropout_mask.hpp, with the run's values from GPU memory. A block of random bits serves
// four neighbors of a sample in row-major order.
struct Mask {
  float rate, scale;
  std::uint64_t operation_key;
  std::int64_t blocks_per_sample;

  // The same for all elements. Must be called by every thread of a block.
  __device__ std::uint64_t shared_key(const RunValues& values) const {
    __shared__ std::uint64_t key;
    if (threadIdx.x == 0) {
      const uint4 mixed = philox(values.seed, operation_key, 0);
      key = (static_cast<std::uint64_t>(mixed.x) << 32) | mixed.y;
    }
    __syncthreads();
    return key;
  }
  // block: counted over all samples of this process.
  __device__ uint4 bits(std::uint64_t key, const RunValues& values, std::int64_t block) const {
    const std::int64_t place = values.sample_offset * blocks_per_sample + block;
    return philox(key, values.step, static_cast<std::uint64_t>(place));
  }
  __device__ float apply(float value, std::uint32_t bits_of_position) const {
    return to_unit(bits_of_position) >= rate ? value * scale : 0;
  }
};

// For row-major samples of a multiple of four elements: blocks are contiguous in memory.
template <typename Element>
__global__ void dropout_whole_blocks(Mask mask, std::int64_t blocks, const RunValues* values, const Element* src,
                                     Element* dst) {
  const std::uint64_t key = mask.shared_key(*values);
  const std::int64_t block = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (block >= blocks) return;
  Values<4> four = load_values<Element, 4>(src + 4 * block);
  const uint4 bits = mask.bits(key, *values, block);
  four.at[0] = mask.apply(four.at[0], bits.x);
  four.at[1] = mask.apply(four.at[1], bits.y);
  four.at[2] = mask.apply(four.at[2], bits.z);
  four.at[3] = mask.apply(four.at[3], bits.w);
  store_values<Element, 4>(dst + 4 * block, four);
}

// For all others: one element per thread, which draws a whole block for it.
template <typename Element>
__global__ void dropout_elements(Mask mask, std::int64_t elements, std::int64_t channels, std::int64_t pixels,
                                 const RunValues* values, const Element* src, Element* dst) {
  const std::uint64_t key = mask.shared_key(*values);
  const std::int64_t element = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (element >= elements) return;
  const std::int64_t pixel_of_batch = element / channels, channel = element % channels;
  const std::int64_t sample = pixel_of_batch / pixels, pixel = pixel_of_batch % pixels;
  const std::int64_t position = channel * pixels + pixel;
  const uint4 bits = mask.bits(key, *values, sample * mask.blocks_per_sample + position / 4);
  const std::uint32_t low = position & 1 ? bits.y : bits.x, high = position & 1 ? bits.w : bits.z;
  dst[element] = from_float<Element>(mask.apply(to_float(src[element]), position & 2 ? high : low));
}

}  // namespace

void launch_dropout(cudaStream_t stream, const DropoutMap& map, const RunValues* values, const void* src, void* dst) {
  const std::int64_t per_sample = map.channels * map.pixels;
  const std::int64_t elements = map.samples * per_sample;
  const float rate = map.operation.rate;
  const Mask mask{rate, 1.0f / (1.0f - rate), map.operation.key, (per_sample + 3) / 4};
  with_element(map.type, [&]<typename Element>(Element) {
    const auto* from = static_cast<const Element*>(src);
    auto* to = static_cast<Element*>(dst);
    if (map.pixels == 1 && per_sample % 4 == 0) {
      const std::int64_t blocks = elements / 4;
      dropout_whole_blocks<<<blocks_of_threads(blocks), kThreads, 0, stream>>>(mask, blocks, values, from, to);
    } else {
      dropout_elements<<<blocks_of_threads(elements), kThreads, 0, stream>>>(mask, elements, map.channels, map.pixels,
                                                                             values, from, to);
    }
  });
  check(cudaGetLastError(), "dropout");
}

}  // namespace trireme::cuda
