// fp16: 1 sign bit, 5 exponent bits with bias 15, 10 fraction bits; maximum 65504, fewer bits below 2^-14. For
// gradients in messages and activations on GPUs, not for computing. Branch-free and inlined, so that loops vectorize.
#pragma once

#include <bit>
#include <cstdint>

namespace trireme {

struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  [[gnu::always_inline]] explicit Float16(float value) : bits(rounded(value)) {}
  [[gnu::always_inline]] static Float16 of_bits(std::uint16_t bits) {
    Float16 value;
    value.bits = bits;
    return value;
  }
  [[gnu::always_inline]] operator float() const {  // NOLINT(google-explicit-constructor): no value is lost
    const std::uint32_t sign = (static_cast<std::uint32_t>(bits) & 0x8000) << 16;
    const std::uint32_t magnitude = (static_cast<std::uint32_t>(bits) & 0x7fff) << 13;
    const std::uint32_t normal = magnitude + (112u << 23);
    const std::uint32_t special = magnitude + (224u << 23);  // infinity and NaN
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude + (113u << 23)) - std::bit_cast<float>(113u << 23));
    std::uint32_t result = magnitude < (1u << 23) ? subnormal : normal;
    result = magnitude >= (31u << 23) ? special : result;
    return std::bit_cast<float>(sign | result);
  }

 private:
  // Rounds to nearest even. NaN stays NaN.
  [[gnu::always_inline]] static std::uint16_t rounded(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (word >> 16) & 0x8000;
    const std::uint32_t magnitude = word & 0x7fffffff;
    // Normal: rebias and round in one addition. Values too large, below 65536, carry over into infinity.
    const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13;
    // Subnormal: the last bit of 0.5 is fp16's smallest step, so adding 0.5 makes the FPU round there.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    std::uint32_t result = magnitude < (113u << 23) ? subnormal : normal;
    result = magnitude >= (143u << 23) ? 0x7c00 : result;  // 65536 and above: infinity
    result = magnitude > (255u << 23) ? 0x7e00 : result;   // NaN
    return static_cast<std::uint16_t>(sign | result);
  }
};
static_assert(sizeof(Float16) == 2);

}  // namespace trireme
