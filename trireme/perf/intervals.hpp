// Where a figure lies, as an interval that holds the true one with a given confidence. Used by comparisons and by
// everything that draws a spread.
#pragma once

#include <cstdint>
#include <span>

namespace trireme::perf {

struct Interval {
  double low = 0, high = 0;
};

inline constexpr double kConfidence = 0.95;
inline constexpr std::uint64_t kBootstrapSeed = 1;  // the same samples give the same interval

// By the bootstrap: medians of samples that are drawn from these with replacement, and the middle `kConfidence` of
// them. One sample, or none, has no spread that one could know: both ends are that sample, or 0.
Interval bootstrap_median(std::span<const double> samples, std::uint64_t seed = kBootstrapSeed);
// median(first) / median(second), likewise; samples of `second` are above 0.
Interval bootstrap_ratio(std::span<const double> first, std::span<const double> second,
                         std::uint64_t seed = kBootstrapSeed);

// mean(first) − mean(second), where variances may differ (Welch). Each set has two samples at least.
struct WelchTest {
  double difference = 0;
  Interval interval = {};
  double degrees = 0;  // of freedom
  double p = 1;        // two-sided
};
WelchTest welch_test(std::span<const double> first, std::span<const double> second);

// Student's distribution: the share of it farther from 0 than t on either side, and the t that leaves `share` so.
double student_two_sided(double t, double degrees);
double student_quantile(double share, double degrees);

}  // namespace trireme::perf
