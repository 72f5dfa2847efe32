// What the device code of this backend has in common: elements of f32 and bf16, read and written several at a time,
// computed in f32; sums over warps and blocks; from a type known when running to one known when compiling.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "trireme/backend/cuda/check.hpp"

namespace trireme::cuda {

using Bf16 = __nv_bfloat16;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Bf16 value) { return __bfloat162float(value); }

template <typename Element>
__device__ inline Element from_float(float value) {
  if constexpr (sizeof(Element) == 2) {
    return __float2bfloat16_rn(value);
  } else {
    return value;
  }
}

// N neighbours, read and written in one access of up to 16 bytes.
template <typename Element, int N>
struct alignas(sizeof(Element) * N) Pack {
  Element values[N];
};
// The most that one access takes.
template <typename Element>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(Element));

template <typename Element, int N>
__device__ inline Pack<Element, N> load_pack(const Element* from) {
  return *reinterpret_cast<const Pack<Element, N>*>(from);
}
template <typename Element, int N>
__device__ inline void store_pack(Element* to, const Pack<Element, N>& pack) {
  *reinterpret_cast<Pack<Element, N>*>(to) = pack;
}

__device__ inline float warp_sum(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
  return value;
}
__device__ inline float warp_max(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  return value;
}

inline int blocks_for(std::int64_t items, int per_block, int most) {
  const std::int64_t blocks = (items + per_block - 1) / per_block;
  return static_cast<int>(blocks < most ? (blocks > 0 ? blocks : 1) : most);
}

// function(Element{}) with the element type of a tensor that is stored as f32 or bf16.
template <typename Function>
void with_element(DataType type, Function function) {
  if (type == DataType::bf16) {
    function(Bf16{});
  } else if (type == DataType::f32) {
    function(float{});
  } else {
    no_kernel_for(type);
  }
}

}  // namespace trireme::cuda
