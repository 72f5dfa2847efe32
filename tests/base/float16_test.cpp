#include "trireme/base/float16.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace trireme {
namespace {

TEST(Float16, EveryValueComesBackFromFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const auto value = Float16::of_bits(static_cast<std::uint16_t>(bits));
    const Float16 back(static_cast<float>(value));
    if (std::isnan(static_cast<float>(value))) {
      EXPECT_TRUE(std::isnan(static_cast<float>(back))) << bits;
    } else {
      EXPECT_EQ(back.bits, value.bits);
    }
  }
}

TEST(Float16, RoundsToTheNearestAndHalvesToEven) {
  const float unit = 0x1.0p-10f;  // between neighbours from 1 to 2
  EXPECT_EQ(static_cast<float>(Float16(1 + 0.49f * unit)), 1);
  EXPECT_EQ(static_cast<float>(Float16(1 + 0.51f * unit)), 1 + unit);
  EXPECT_EQ(static_cast<float>(Float16(1 + 0.5f * unit)), 1);
  EXPECT_EQ(static_cast<float>(Float16(1 + 1.5f * unit)), 1 + 2 * unit);
  EXPECT_EQ(static_cast<float>(Float16(-1 - 0.51f * unit)), -1 - unit);
}

TEST(Float16, TheEndsOfTheRange) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(static_cast<float>(Float16(65504.0f)), 65504.0f);
  EXPECT_EQ(static_cast<float>(Float16(65520.0f)), infinity);
  EXPECT_EQ(static_cast<float>(Float16(std::numeric_limits<float>::max())), infinity);
  EXPECT_EQ(static_cast<float>(Float16(-infinity)), -infinity);
  EXPECT_EQ(static_cast<float>(Float16(0x1p-24f)), 0x1p-24f);
  EXPECT_EQ(static_cast<float>(Float16(0x1p-25f)), 0);
  EXPECT_TRUE(std::isnan(static_cast<float>(Float16(std::bit_cast<float>(0x7fffffffU)))));
}

}  // namespace
}  // namespace trireme
