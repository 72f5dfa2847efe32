// Offsets in tensors from positions of a walk, and loads from tensors whose element type is known only at run time.
#pragma once

#include <type_traits>

#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {

inline constexpr int kThreads = 256;

__device__ inline std::uint32_t quotient(std::uint32_t dividend, const FastDivide& by) {
  return (__umulhi(dividend, by.multiplier) + dividend) >> by.shift;
}

template <int kTensors>
struct Offsets {
  std::int64_t of[kTensors] = {};
};

template <int kTensors>
__device__ inline Offsets<kTensors> offsets_at(const Walk<kTensors>& walk, std::uint32_t position) {
  Offsets<kTensors> offsets;
  // Unrolled, so that the walk is read from the kernel's arguments at fixed addresses.
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    if (axis >= walk.axes) break;
    const std::uint32_t rest = quotient(position, walk.extents[axis]);
    const std::int64_t index = position - rest * walk.extents[axis].divisor;
#pragma unroll
    for (int tensor = 0; tensor < kTensors; ++tensor) offsets.of[tensor] += index * walk.strides[tensor][axis];
    position = rest;
  }
  return offsets;
}

// This thread's position, if each has one.
__device__ inline std::uint32_t thread_position() { return blockIdx.x * kThreads + threadIdx.x; }
inline unsigned blocks_of_threads(std::int64_t positions) {
  return static_cast<unsigned>((positions + kThreads - 1) / kThreads);
}

template <int kWidth>
struct Values {
  float at[kWidth];
};

template <typename Element, int kWidth>
__device__ inline Values<kWidth> load_values(const Element* from) {
  const Pack<Element, kWidth> pack = load_pack<Element, kWidth>(from);
  Values<kWidth> values;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values.at[i] = to_float(pack.values[i]);
  return values;
}

template <typename Element, int kWidth>
__device__ inline void store_values(Element* to, const Values<kWidth>& values) {
  Pack<Element, kWidth> pack;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.values[i] = from_float<Element>(values.at[i]);
  store_pack<Element, kWidth>(to, pack);
}

// Contiguous elements, or the first one for all of them.
template <typename Element, int kWidth>
__device__ inline Values<kWidth> load_maybe_repeated(const Element* from, bool repeated) {
  if (!repeated) return load_values<Element, kWidth>(from);
  const float value = to_float(*from);
  Values<kWidth> values;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) values.at[i] = value;
  return values;
}

// All threads take the same branch.
template <int kWidth>
__device__ inline Values<kWidth> load_any(const void* data, DataType type, std::int64_t offset, bool repeated) {
  if (type == DataType::bf16)
    return load_maybe_repeated<Bf16, kWidth>(static_cast<const Bf16*>(data) + offset, repeated);
  if (type == DataType::f16)
    return load_maybe_repeated<Fp16, kWidth>(static_cast<const Fp16*>(data) + offset, repeated);
  return load_maybe_repeated<float, kWidth>(static_cast<const float*>(data) + offset, repeated);
}

// function(Element{}, std::integral_constant<int, width>{}); width is 1 or fills 16 bytes.
template <typename Function>
void with_packs(DataType type, int width, Function function) {
  with_element(type, [&]<typename Element>(Element element) {
    if (width == 1) {
      function(element, std::integral_constant<int, 1>{});
    } else {
      function(element, std::integral_constant<int, kPack<Element>>{});
    }
  });
}

}  // namespace trireme::cuda
