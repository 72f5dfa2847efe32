#include "trireme/perf/intervals.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "trireme/perf/rank_test.hpp"

namespace trireme::perf {
namespace {

using Samples = std::vector<double>;

double share_held(std::size_t samples, int trials) {
  std::mt19937_64 random(7);
  int held = 0;
  for (int trial = 0; trial < trials; ++trial) {
    Samples drawn(samples);
    for (double& sample : drawn) sample = static_cast<double>(random() % 10001);
    const Interval interval = median_interval(drawn);
    held += interval.low <= 5000 && 5000 <= interval.high;
  }
  return static_cast<double>(held) / trials;
}

TEST(MedianInterval, LiesBetweenSamplesThatTheBinomialTableNames) {
  Samples samples;
  for (int i = 1; i <= 20; ++i) samples.push_back(i);
  const auto of = [&](std::size_t count) { return median_interval(std::span(samples).first(count)); };
  EXPECT_EQ(of(6).low, 1);  // 1 - 2 / 64 = 0.969
  EXPECT_EQ(of(6).high, 6);
  EXPECT_EQ(of(8).low, 1);
  EXPECT_EQ(of(9).low, 2);
  EXPECT_EQ(of(9).high, 8);
  EXPECT_EQ(of(20).low, 6);  // the 6th and the 15th
  EXPECT_EQ(of(20).high, 15);
  EXPECT_FALSE(of(6).is_range);
}

TEST(MedianInterval, FewSamplesHaveARangeAndSaySo) {
  const Interval five = median_interval(Samples{3, 1, 2, 5, 4});
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  EXPECT_TRUE(five.is_range);
  EXPECT_STREQ(kind_text(five), "range");
  EXPECT_STREQ(kind_text(median_interval(Samples{3, 1, 2, 5, 4, 6})), "95 %");
  EXPECT_EQ(median_interval(Samples{4}).high, 4);
  EXPECT_EQ(median_interval(Samples{}).high, 0);
}

TEST(MedianInterval, HoldsTheTruthAsOftenAsItSays) {
  for (const std::size_t samples : {6U, 7U, 11U, 15U, 40U}) EXPECT_GE(share_held(samples, 2000), 0.94) << samples;
  EXPECT_LT(share_held(15, 2000), 0.985);
  EXPECT_LT(share_held(3, 2000), 0.80);  // why fewer than six have a range
}

TEST(RatioInterval, IsWhatTheRankTestDoesNotRefuse) {
  const Samples a{11, 12, 13, 12.5, 11.5}, b{10, 10.5, 9.5, 10.2, 9.8};
  const Interval interval = ratio_interval(a, b);
  EXPECT_FALSE(interval.is_range);
  const auto p_at = [&](double factor) {
    Samples shifted = b;
    for (double& sample : shifted) sample *= factor;
    return rank_test(a, shifted).p;
  };
  EXPECT_LT(p_at(interval.low * 0.999), 0.05);
  EXPECT_GT(p_at(interval.low * 1.001), 0.05);
  EXPECT_GT(p_at(interval.high * 0.999), 0.05);
  EXPECT_LT(p_at(interval.high * 1.001), 0.05);
}

TEST(RatioInterval, HoldsTheTruthAsOftenAsItSays) {
  std::mt19937_64 random(11);
  const auto draw = [&](double factor) { return factor * (1 + static_cast<double>(random() % 1001) / 5000); };
  int held = 0;
  constexpr int kTrials = 2000;
  for (int trial = 0; trial < kTrials; ++trial) {
    Samples first(5), second(5);
    for (double& sample : first) sample = draw(1.2);
    for (double& sample : second) sample = draw(1);
    const Interval interval = ratio_interval(first, second);
    held += interval.low <= 1.2 && 1.2 <= interval.high;
  }
  EXPECT_GE(held, 0.945 * kTrials);
}

TEST(RatioInterval, TooFewSamplesHaveARange) {
  const Interval three = ratio_interval(Samples{6, 7, 8}, Samples{2, 3, 4});
  EXPECT_TRUE(three.is_range);
  EXPECT_EQ(three.low, 1.5);
  EXPECT_EQ(three.high, 4);
  EXPECT_FALSE(ratio_interval(Samples{6, 7, 8, 9}, Samples{2, 3, 4, 5}).is_range);
  EXPECT_EQ(ratio_interval(Samples{6, 6, 6}, Samples{2, 2, 2}).low, 3);
}

TEST(RatioInterval, HoldsTheRatioOfMediansAlways) {
  const Samples a{1, 1, 1, 1, 5, 5, 5, 5, 5}, b{5, 5, 5, 5, 5, 9, 9, 9, 9};
  EXPECT_GE(ratio_interval(a, b).high, 1);
}

TEST(RatioInterval, ManySamplesAreApproximated) {
  Samples a, b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(200 + i);
    b.push_back(100 + i);
  }
  const Interval interval = ratio_interval(a, b);
  EXPECT_GT(interval.low, 1.7);
  EXPECT_LT(interval.high, 2.0);
}

TEST(Interval, KeepsItsKindWhenScaled) {
  const Interval half = scaled({2, 4, true}, 0.5);
  EXPECT_EQ(half.low, 1);
  EXPECT_EQ(half.high, 2);
  EXPECT_TRUE(half.is_range);
}

}  // namespace
}  // namespace trireme::perf
