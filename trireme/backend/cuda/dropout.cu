#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// The generator of trireme/base/random.hpp for the GPU; must give the same bits.
__device__ uint4 philox(std::uint64_t key, std::uint64_t counter_high, std::uint64_t counter_low) {
  std::uint32_t k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  uint4 c{static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
          static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c.x;
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c.z;
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c.y ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c.w ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

// [0, 1) with 24 bits.
__device__ float to_unit(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1.0p-24f; }

// DropoutMask of trireme/backend/dropout_mask.hpp, with the run's values from GPU memory. A block of random bits serves
// four neighbors of a sample in row-major order.
struct Mask {
  float rate, scale;
  std::uint64_t operation_key;
  std::int64_t blocks_per_sample;
  std::int64_t first_sample = 0;  // of the kernel's, in the run

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
    const std::int64_t place = (values.sample_offset + first_sample) * blocks_per_sample + block;
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

KernelChoice make(const op::Dropout& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const Shape& shape = request.inputs[0].shape;
  const std::int64_t elements = shape.elements(), per_sample = elements / shape[0];
  // Samples in memory order: row-major if pixels is 1, else pixels x channels.
  const bool row_major = format.layout.is_plain() || shape[1] == per_sample || shape[1] == 1;
  const std::int64_t channels = row_major ? per_sample : shape[1], pixels = per_sample / channels;
  const float rate = operation.rate;
  const Mask whole{rate, 1.0f / (1.0f - rate), operation.key, (per_sample + 3) / 4};
  const auto launch = [=, type = format.dtype, &device](const Operands& operands, const RunContext&) {
    with_element(type, [&]<typename Element>(Element) {
      Mask mask = whole;
      mask.first_sample = operands.first_sample();
      const auto* const from = operands.input<Element>(0);
      auto* const to = operands.output<Element>();
      if (pixels == 1 && per_sample % 4 == 0) {
        dropout_whole_blocks<<<blocks_of_threads(elements / 4), kThreads, 0, device.stream()>>>(
            mask, elements / 4, device.run_values(), from, to);
      } else {
        dropout_elements<<<blocks_of_threads(elements), kThreads, 0, device.stream()>>>(
            mask, elements, channels, pixels, device.run_values(), from, to);
      }
    });
    check(cudaGetLastError(), "dropout");
  };
  KernelChoice choice = function_kernel(request, "own", launch);
  choice.inputs = choice.outputs = {format};
  choice.in_place = {{0, 0}};
  return choice;
}

}  // namespace trireme::cuda
