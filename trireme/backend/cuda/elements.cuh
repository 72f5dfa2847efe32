// Shared by device code: f32, bf16 and fp16 elements, accessed several at a time, computed in f32; type dispatch.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "trireme/backend/cuda/library.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/shape.hpp"

namespace trireme::cuda {

using Bf16 = __nv_bfloat16;
using Fp16 = __half;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Bf16 value) { return __bfloat162float(value); }
__device__ inline float to_float(Fp16 value) { return __half2float(value); }

template <typename Element>
__device__ inline Element from_float(float value) {
  if constexpr (std::is_same_v<Element, Bf16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<Element, Fp16>) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

// Two neighbors of a narrow type, which many instructions take at once.
using Bf16Pair = __nv_bfloat162;
using Fp16Pair = __half2;
template <typename Element>
using PairOf = std::conditional_t<std::is_same_v<Element, Bf16>, Bf16Pair, Fp16Pair>;

// A shift and a mask are cheaper than the conversions.
__device__ inline float2 to_float2(Bf16Pair pair) {
  const unsigned bits = reinterpret_cast<const unsigned&>(pair);
  return make_float2(__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u));
}
__device__ inline float2 to_float2(Fp16Pair pair) { return __half22float2(pair); }

template <typename Pair>
__device__ inline Pair from_float2(float low, float high) {
  if constexpr (std::is_same_v<Pair, Bf16Pair>) {
    return __floats2bfloat162_rn(low, high);
  } else {
    return __floats2half2_rn(low, high);
  }
}

// N neighbors, read and written in accesses of up to 16 bytes.
template <typename Element, int N>
struct alignas(sizeof(Element) * N) Pack {
  Element values[N];
};
// Elements in one access of 16 bytes.
template <typename Element>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(Element));

// The type of one access. Explicit, because the compiler would move each member of structures such as bf16 pairs alone.
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

// function(Element{}) with the element type of f32, bf16 or fp16 tensors; Error(failed) for others.
template <typename Function>
void with_element(DataType type, Function function) {
  if (type == DataType::bf16) {
    function(Bf16{});
  } else if (type == DataType::f16) {
    function(Fp16{});
  } else if (type == DataType::f32) {
    function(float{});
  } else {
    fail(ErrorKind::failed, "the cuda backend has no kernel for elements of {}", to_string(type));
  }
}

}  // namespace trireme::cuda
