// bf16: the upper half of a float, with its range and eight bits of precision. Kernels convert on read, compute in
// float, and round on write. Always inlined, because a call in a loop prevents vectorization.
#pragma once

#include <bit>
#include <cstdint>

namespace trireme {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  [[gnu::always_inline]] explicit BFloat16(float value) : bits(rounded(value)) {}
  [[gnu::always_inline]] static BFloat16 of_bits(std::uint16_t bits) {
    BFloat16 value;
    value.bits = bits;
    return value;
  }
  // Use this to write in loops: the compiler vectorizes it, but not a copy of the struct.
  [[gnu::always_inline]] BFloat16& operator=(float value) {
    bits = rounded(value);
    return *this;
  }
  [[gnu::always_inline]] operator float() const {  // NOLINT(google-explicit-constructor): no value is lost
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  // Rounds to nearest even. NaN stays NaN.
  [[gnu::always_inline]] static std::uint16_t rounded(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = word + 0x7fffU + ((word >> 16) & 1U);
    const std::uint32_t nan = word | 0x400000U;
    return static_cast<std::uint16_t>(((word & 0x7fffffffU) > 0x7f800000U ? nan : nearest) >> 16);
  }
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace trireme
