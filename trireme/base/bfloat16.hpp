// bf16: the upper half of a float. Eight bits of precision with the range of a float, in half the memory. Kernels read
// it, compute in float, and round when they write; nothing is computed in it. Always inlined, because a call in a loop
// keeps the compiler from making vectors of it.
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
  // The way to write in loops: the compiler makes vectors of it, which it does not of a copy of the struct.
  [[gnu::always_inline]] BFloat16& operator=(float value) {
    bits = rounded(value);
    return *this;
  }
  [[gnu::always_inline]] operator float() const {  // NOLINT(google-explicit-constructor): no value is lost
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  // To the nearest, of two equally near ones to the even one. A NaN stays one.
  [[gnu::always_inline]] static std::uint16_t rounded(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t nearest = word + 0x7fffU + ((word >> 16) & 1U);
    const std::uint32_t nan = word | 0x400000U;
    return static_cast<std::uint16_t>(((word & 0x7fffffffU) > 0x7f800000U ? nan : nearest) >> 16);
  }
};
static_assert(sizeof(BFloat16) == 2);

}  // namespace trireme
