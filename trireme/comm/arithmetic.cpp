#include "trireme/comm/arithmetic.hpp"

#include "trireme/base/bfloat16.hpp"
#include "trireme/base/float16.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::comm {
namespace {

TRIREME_SIMD void add(float* into, const float* a, const float* b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) into[i] = a[i] + b[i];
}

TRIREME_SIMD void take_larger(float* into, const float* a, const float* b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) into[i] = a[i] > b[i] ? a[i] : b[i];
}

TRIREME_SIMD void multiply(float* values, float factor, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] *= factor;
}

TRIREME_SIMD void encode_bf16(const float* values, std::uint16_t* wire, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) wire[i] = BFloat16(values[i]).bits;
}
TRIREME_SIMD void decode_bf16(const std::uint16_t* wire, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = BFloat16::of_bits(wire[i]);
}
TRIREME_SIMD void encode_fp16(const float* values, std::uint16_t* wire, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) wire[i] = Float16(values[i]).bits;
}
TRIREME_SIMD void decode_fp16(const std::uint16_t* wire, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = Float16::of_bits(wire[i]);
}

}  // namespace

void combine(float* into, const float* a, const float* b, std::size_t count, Reduction reduction) {
  if (reduction == Reduction::max) {
    take_larger(into, a, b, count);
  } else {
    add(into, a, b, count);
  }
}

void scale(std::span<float> values, float factor) { multiply(values.data(), factor, values.size()); }

void finish_reduction(std::span<float> values, Reduction reduction, int contributions) {
  if (reduction == Reduction::mean) scale(values, 1.0f / static_cast<float>(contributions));
}

void encode(std::span<const float> values, std::uint16_t* wire, Wire form) {
  if (form == Wire::bf16) {
    encode_bf16(values.data(), wire, values.size());
  } else {
    encode_fp16(values.data(), wire, values.size());
  }
}

void decode(const std::uint16_t* wire, std::span<float> values, Wire form) {
  if (form == Wire::bf16) {
    decode_bf16(wire, values.data(), values.size());
  } else {
    decode_fp16(wire, values.data(), values.size());
  }
}

}  // namespace trireme::comm
