#include "trireme/perf/intervals.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <stdexcept>
#include <vector>

#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

using Samples = std::vector<double>;

TEST(Student, QuantilesAreThoseOfTheTables) {
  EXPECT_NEAR(student_quantile(0.05, 1), 12.7062, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 4), 2.7764, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 10), 2.2281, 1e-4);
  EXPECT_NEAR(student_quantile(0.01, 30), 2.7500, 1e-4);
  EXPECT_NEAR(student_quantile(0.05, 1e6), 1.9600, 1e-4);
}

TEST(Student, SharesAreThoseOfClosedForms) {
  for (const double t : {0.3, 1.0, 4.0}) {
    EXPECT_NEAR(student_two_sided(t, 1), 1 - 2 / M_PI * std::atan(t), 1e-12);  // Cauchy's distribution
    EXPECT_NEAR(student_two_sided(-t, 2), 1 - t / std::sqrt(2 + t * t), 1e-12);
  }
  EXPECT_NEAR(student_two_sided(0, 7), 1, 1e-12);
}

TEST(Welch, AgreesWithAWorkedExample) {  // sums by hand, p by numerical integration of the density
  const Samples a{27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1, 21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4};
  const Samples b{27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5, 24.4};
  const WelchTest test = welch_test(a, b);
  EXPECT_NEAR(test.difference, -2.8333333333, 1e-9);
  EXPECT_NEAR(test.degrees, 27.88730398842012, 1e-9);
  EXPECT_NEAR(test.p, 0.008071938172, 1e-9);
  EXPECT_NEAR(test.interval.low, -4.868022741792, 1e-8);
  EXPECT_NEAR(test.interval.high, -0.798643924875, 1e-8);
}

TEST(Welch, SamplesWithoutSpread) {
  EXPECT_EQ(welch_test(Samples{2, 2}, Samples{2, 2}).p, 1);
  EXPECT_EQ(welch_test(Samples{3, 3}, Samples{2, 2}).p, 0);
  EXPECT_EQ(welch_test(Samples{3, 3}, Samples{2, 2}).interval.low, 1);
  EXPECT_THROW(welch_test(Samples{3}, Samples{2, 2}), std::invalid_argument);
}

TEST(Bootstrap, SameSamplesGiveTheSameInterval) {
  const Samples samples{10, 11, 12, 13, 30};
  const Interval once = bootstrap_median(samples), again = bootstrap_median(samples);
  EXPECT_EQ(once.low, again.low);
  EXPECT_EQ(once.high, again.high);
}

TEST(Bootstrap, IntervalOfASmallSetIsThatOfAllItsDraws) {
  // Of the 27 draws of three from {1, 2, 3}, the medians are 1 in 7, 2 in 13 and 3 in 7: both ends are extremes.
  const Interval three = bootstrap_median(Samples{1, 2, 3});
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);
  // Of five samples, the median of a draw is the smallest in 5.8 % of all draws: more than 2.5 %.
  const Interval five = bootstrap_median(Samples{1, 2, 3, 4, 5});
  EXPECT_EQ(five.low, 1);
  EXPECT_EQ(five.high, 5);
  // Of eleven, it is one of the two smallest in 0.7 % and one of the three smallest in 5.1 %.
  const Interval eleven = bootstrap_median(Samples{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  EXPECT_EQ(eleven.low, 3);
  EXPECT_EQ(eleven.high, 9);
}

TEST(Bootstrap, IntervalsHoldTheTruthAboutAsOftenAsTheySay) {
  std::mt19937_64 random(7);
  int held = 0;
  constexpr int kTrials = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    Samples samples(15);
    for (double& sample : samples) sample = static_cast<double>(random() % 10001);
    const Interval interval = bootstrap_median(samples);
    held += interval.low <= 5000 && 5000 <= interval.high;
  }
  EXPECT_GE(held, 0.90 * kTrials);
  EXPECT_LE(held, 0.99 * kTrials);
}

TEST(Bootstrap, RatioOfConstantsIsOneNumber) {
  const Interval interval = bootstrap_ratio(Samples{6, 6, 6}, Samples{2, 2, 2});
  EXPECT_EQ(interval.low, 3);
  EXPECT_EQ(interval.high, 3);
}

TEST(Bootstrap, RatioHoldsTheRatioOfMedians) {
  const Samples a{11, 12, 13, 12.5, 11.5}, b{10, 10.5, 9.5, 10.2, 9.8};
  const Interval interval = bootstrap_ratio(a, b);
  EXPECT_LT(interval.low, 1.2);
  EXPECT_GT(interval.high, 1.2);
  EXPECT_GT(interval.low, 11 / 10.5 - 1e-9);
  EXPECT_LT(interval.high, 13 / 9.5 + 1e-9);
}

TEST(Bootstrap, FewSamples) {
  EXPECT_EQ(bootstrap_median(Samples{4}).low, 4);
  EXPECT_EQ(bootstrap_median(Samples{4}).high, 4);
  EXPECT_EQ(bootstrap_median(Samples{}).high, 0);
}

}  // namespace
}  // namespace trireme::perf
