#include "trireme/comm/arithmetic.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace trireme::comm {
namespace {

float through(float value, Wire wire) {
  std::uint16_t bits = 0;
  encode({&value, 1}, &bits, wire);
  float back = 0;
  decode(&bits, {&back, 1}, wire);
  return back;
}

// Every 16-bit pattern is a float that comes back as the same pattern.
TEST(Wire, EveryPatternSurvives) {
  std::vector<std::uint16_t> patterns(65536), back(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  for (const Wire wire : {Wire::fp16, Wire::bf16}) {
    std::vector<float> values(65536);
    decode(patterns.data(), values, wire);
    encode(values, back.data(), wire);
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (std::isnan(values[i])) continue;
      ASSERT_EQ(back[i], patterns[i]) << to_string(wire) << ", value " << values[i];
    }
  }
}

TEST(Wire, RoundsToNearestEven) {
  EXPECT_EQ(through(1.0f + 0x1p-11f, Wire::fp16), 1.0f);  // halfway: to the even one
  EXPECT_EQ(through(1.0f + 3 * 0x1p-11f, Wire::fp16), 1.0f + 0x1p-9f);
  EXPECT_EQ(through(1.0f + 0x1.8p-11f, Wire::fp16), 1.0f + 0x1p-10f);
  EXPECT_EQ(through(1.0f + 0x1p-8f, Wire::bf16), 1.0f);
  EXPECT_EQ(through(1.0f + 3 * 0x1p-8f, Wire::bf16), 1.0f + 0x1p-6f);
  EXPECT_EQ(through(0x1p-24f, Wire::fp16), 0x1p-24f);  // the smallest subnormal
  EXPECT_EQ(through(0x1p-25f, Wire::fp16), 0.0f);
  EXPECT_EQ(through(-2.5f, Wire::fp16), -2.5f);
}

TEST(Wire, KeepsWhatIsNoNumber) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(through(65504.0f, Wire::fp16), 65504.0f);
  EXPECT_EQ(through(65520.0f, Wire::fp16), infinity);
  EXPECT_EQ(through(1e30f, Wire::fp16), infinity);
  EXPECT_EQ(through(-infinity, Wire::bf16), -infinity);
  EXPECT_TRUE(std::isnan(through(std::nanf(""), Wire::fp16)));
  EXPECT_TRUE(std::isnan(through(std::bit_cast<float>(0x7f800001u), Wire::bf16)));
}

}  // namespace
}  // namespace trireme::comm
