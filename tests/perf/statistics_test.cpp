#include "trireme/perf/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace trireme::perf {
namespace {

TEST(Statistics, KnownSample) {
  const std::vector<double> samples{2, 4, 4, 4, 5, 5, 7, 9};  // squared distances from 5 add up to 32
  const Summary summary = summarize(samples);
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_DOUBLE_EQ(summary.median, 4.5);
  EXPECT_DOUBLE_EQ(summary.stddev, std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(summary.stderr_mean, std::sqrt(32.0 / 7 / 8));
  EXPECT_DOUBLE_EQ(summary.minimum, 2);
  EXPECT_DOUBLE_EQ(summary.maximum, 9);
}

TEST(Statistics, OrderDoesNotMatter) {
  const std::vector<double> samples{9, 1, 5}, reversed{5, 1, 9};
  EXPECT_DOUBLE_EQ(median(samples), 5);
  EXPECT_DOUBLE_EQ(summarize(samples).p95, summarize(reversed).p95);
}

TEST(Statistics, PercentileIsInterpolated) {
  std::vector<double> samples;
  for (int i = 0; i <= 100; ++i) samples.push_back(i);
  EXPECT_DOUBLE_EQ(summarize(samples).p95, 95);
  const std::vector<double> two{0, 1};
  EXPECT_DOUBLE_EQ(summarize(two).p95, 0.95);
}

TEST(Statistics, NoSamplesGiveZeros) {
  const Summary summary = summarize({});
  EXPECT_EQ(summary.mean, 0);
  EXPECT_EQ(summary.p95, 0);
  EXPECT_EQ(summary.maximum, 0);
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(jitter({}), 0);
}

TEST(Statistics, OneSampleHasNoSpread) {
  const std::vector<double> one{3.5};
  const Summary summary = summarize(one);
  EXPECT_EQ(summary.mean, 3.5);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.p95, 3.5);
  EXPECT_EQ(summary.stddev, 0);
  EXPECT_EQ(summary.stderr_mean, 0);
}

TEST(Statistics, JitterIsNotMovedByOneOutlier) {
  const std::vector<double> samples{1, 2, 3, 4, 1000};  // distances from 3: 2, 1, 0, 1, 997
  EXPECT_DOUBLE_EQ(jitter(samples), 1.4826);
}

}  // namespace
}  // namespace trireme::perf
