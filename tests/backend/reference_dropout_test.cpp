#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using testkit::BoundKernel;
using testkit::f32;

// Seven positions: not a multiple of the four that one block of random bits serves.
constexpr std::int64_t kPositions = 7;

std::vector<float> drop(const op::Dropout& dropout, std::int64_t batch, const RunContext& context, float value = 1) {
  const std::vector<float> values(batch * kPositions, value);
  return BoundKernel(dropout, {f32({batch, kPositions}, values)}).run(context).output();
}

TEST(ReferenceDropout, KeepsTheExpectedShareAndScalesIt) {
  constexpr float kRate = 0.3f;
  constexpr std::int64_t kBatch = 10000;
  const std::vector<float> dst = drop({.rate = kRate, .key = 5}, kBatch, {.seed = 1});
  std::int64_t kept = 0;
  for (const float value : dst) {
    if (value == 0) continue;
    ASSERT_FLOAT_EQ(value, 1 / (1 - kRate));
    ++kept;
  }
  // Five standard deviations of a binomial count.
  const double count = static_cast<double>(dst.size());
  EXPECT_NEAR(static_cast<double>(kept) / count, 1 - kRate, 5 * std::sqrt(kRate * (1 - kRate) / count));
}

TEST(ReferenceDropout, TheSameRunGivesTheSameMaskToTheGradient) {
  const op::Dropout dropout{.rate = 0.5f, .key = 5};
  const RunContext context{.seed = 3, .step = 11};
  const std::vector<float> forward = drop(dropout, 20, context, 1), backward = drop(dropout, 20, context, 3);
  for (std::size_t i = 0; i < forward.size(); ++i) EXPECT_FLOAT_EQ(backward[i], 3 * forward[i]);
}

TEST(ReferenceDropout, SeedKeyAndStepEachChangeTheMask) {
  const op::Dropout dropout{.rate = 0.5f, .key = 5};
  const std::vector<float> mask = drop(dropout, 20, {.seed = 3, .step = 11});
  EXPECT_NE(drop(dropout, 20, {.seed = 4, .step = 11}), mask);
  EXPECT_NE(drop(dropout, 20, {.seed = 3, .step = 12}), mask);
  EXPECT_NE(drop({.rate = 0.5f, .key = 6}, 20, {.seed = 3, .step = 11}), mask);
}

TEST(ReferenceDropout, TheMaskOfASampleIsTheSameInWhicheverProcessItIs) {
  const op::Dropout dropout{.rate = 0.5f, .key = 5};
  const std::vector<float> together = drop(dropout, 6, {.seed = 3});
  std::vector<float> apart = drop(dropout, 2, {.seed = 3});
  const std::vector<float> rest = drop(dropout, 4, {.seed = 3, .sample_offset = 2});
  apart.insert(apart.end(), rest.begin(), rest.end());
  EXPECT_EQ(apart, together);
}

TEST(ReferenceDropout, RateZeroKeepsAll) {
  EXPECT_EQ(drop({.rate = 0, .key = 5}, 3, {}), std::vector<float>(3 * kPositions, 1.0f));
}

}  // namespace
}  // namespace trireme
