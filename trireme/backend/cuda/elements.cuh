// What the device code of this backend has in common: elements of f32 and bf16, read and written several at a time,
// computed in f32; sums over warps and blocks; from a type known when running to one known when compiling.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

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

// What one access moves. Said, since of structures such as pairs of bf16 the compiler would move each member alone.
template <std::size_t kBytes>
using Access = std::conditional_t<
    kBytes % 16 == 0, uint4,
    std::conditional_t<
        kBytes == 8, uint2,
        std::conditional_t<kBytes == 4, unsigned, std::conditional_t<kBytes == 2, unsigned short, unsigned char>>>>;

template <typename Element, int N>
__device__ inline Pack<Element, N> load_pack(const Element* from) {
  using Word = Access<sizeof(Pack<Element, N>)>;
  constexpr int kWords = sizeof(Pack<Element, N>) / sizeof(Word);
  Word words[kWords];
#pragma unroll
  for (int i = 0; i < kWords; ++i) words[i] = reinterpret_cast<const Word*>(from)[i];
  Pack<Element, N> pack;
  memcpy(&pack, words, sizeof(pack));
  return pack;
}
template <typename Element, int N>
__device__ inline void store_pack(Element* to, const Pack<Element, N>& pack) {
  using Word = Access<sizeof(Pack<Element, N>)>;
  constexpr int kWords = sizeof(Pack<Element, N>) / sizeof(Word);
  Word words[kWords];
  memcpy(words, &pack, sizeof(pack));
#pragma unroll
  for (int i = 0; i < kWords; ++i) reinterpret_cast<Word*>(to)[i] = words[i];
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
