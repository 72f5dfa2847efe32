// Confidence intervals. Used by comparisons and by everything that draws a spread.
#pragma once

#include <span>

namespace trireme::perf {

struct Interval {
  double low = 0, high = 0;
  bool is_range = false;  // too few samples for that confidence: minimum to maximum
};

inline constexpr double kConfidence = 0.95;

// Both are distribution-free and hold the true value with at least kConfidence; without samples {0, 0}.
//
// Of the median: between two samples, counted from either end. Needs 6; fewer give their range.
Interval median_interval(std::span<const double> samples);
// Of first / second: the factors the rank test does not reject, and median(first) / median(second). Needs 4 of each, or
// enough that the test can reject; fewer give the range of all ratios. Samples must be above 0.
Interval ratio_interval(std::span<const double> first, std::span<const double> second);

Interval scaled(const Interval& interval, double factor);
const char* kind_text(const Interval& interval);  // "95 %", "range"

}  // namespace trireme::perf
