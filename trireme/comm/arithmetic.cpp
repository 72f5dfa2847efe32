#include "trireme/comm/arithmetic.hpp"

#include <bit>

#include "trireme/base/bfloat16.hpp"
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

// fp16: 1 sign bit, 5 of exponent with bias 15, 10 of fraction. Without branches, so that the loop becomes vectors.
TRIREME_INLINE std::uint16_t to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  // Normal: change of bias and rounding in one addition. Too large a value carries over into infinity below 65536.
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  // Subnormal: the last bit of 0.5 is the smallest step of fp16, so that adding it makes the FPU round there.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
  result = magnitude >= (143u << 23) ? 0x7c00 : result;  // 65536 and more: infinite
  result = magnitude > (255u << 23) ? 0x7e00 : result;   // NaN
  return static_cast<std::uint16_t>(sign | result);
}

TRIREME_INLINE float from_fp16(std::uint16_t wire) {
  const std::uint32_t sign = (static_cast<std::uint32_t>(wire) & 0x8000) << 16;
  const std::uint32_t magnitude = (static_cast<std::uint32_t>(wire) & 0x7fff) << 13;
  const std::uint32_t normal = magnitude + (112u << 23);
  const std::uint32_t special = magnitude + (224u << 23);  // infinite and NaN
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23));
  std::uint32_t result = magnitude < (1u << 23) ? subnormal : normal;
  result = magnitude >= (31u << 23) ? special : result;
  return std::bit_cast<float>(sign | result);
}

TRIREME_SIMD void encode_bf16(const float* values, std::uint16_t* wire, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) wire[i] = BFloat16(values[i]).bits;
}
TRIREME_SIMD void decode_bf16(const std::uint16_t* wire, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = BFloat16::of_bits(wire[i]);
}
TRIREME_SIMD void encode_fp16(const float* values, std::uint16_t* wire, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) wire[i] = to_fp16(values[i]);
}
TRIREME_SIMD void decode_fp16(const std::uint16_t* wire, float* values, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) values[i] = from_fp16(wire[i]);
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
