#include "trireme/base/bfloat16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trireme {
namespace {

TEST(BFloat16, EveryValueComesBackFromFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto value = BFloat16::of_bits(static_cast<std::uint16_t>(bits));
    const BFloat16 back(static_cast<float>(value));
    if (std::isnan(static_cast<float>(value))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    } else {
      EXPECT_EQ(back.bits, value.bits);
    }
  }
}

TEST(BFloat16, RoundsToTheNearestAndHalvesToEven) {
  const float unit = 0x1.0p-7f;  // between neighbours from 1 to 2
  EXPECT_EQ(static_cast<float>(BFloat16(1 + 0.49f * unit)), 1);
  EXPECT_EQ(static_cast<float>(BFloat16(1 + 0.51f * unit)), 1 + unit);
  EXPECT_EQ(static_cast<float>(BFloat16(1 + 0.5f * unit)), 1);
  EXPECT_EQ(static_cast<float>(BFloat16(1 + 1.5f * unit)), 1 + 2 * unit);
  EXPECT_EQ(static_cast<float>(BFloat16(-1 - 0.51f * unit)), -1 - unit);
}

TEST(BFloat16, TheEndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(BFloat16(infinity)), infinity);
  EXPECT_EQ(static_cast<float>(BFloat16(std::numeric_limits<float>::max())), infinity);
  // All bits set: rounding up would make it a zero.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7fffffffU)))));
}

}  // namespace
}  // namespace trireme
