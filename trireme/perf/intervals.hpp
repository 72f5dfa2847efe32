// Where a figure lies, as an interval that holds the true one with a given confidence. Used by comparisons and by
// everything that draws a spread.
#pragma once

#include <span>

namespace trireme::perf {

struct Interval {
  double low = 0, high = 0;
  bool is_range = false;  // of too few samples to be that sure: from the least to the most
};

inline constexpr double kConfidence = 0.95;

// Both ask nothing of the distribution and hold the truth with kConfidence at least; none of no samples is {0, 0}.
//
// Of the median: between two of the samples, counted from either end. Needs 6; fewer give their range.
Interval median_interval(std::span<const double> samples);
// Of how many times larger the first samples are: the factors that the rank test does not refuse, widened to
// median(first) / median(second) where that lies outside. Needs 4 of each, or whatever can make the test speak; fewer
// give the range of all ratios. Samples are above 0.
Interval ratio_interval(std::span<const double> first, std::span<const double> second);

Interval scaled(const Interval& interval, double factor);
// What its ends are: "95 %", "range".
const char* kind_text(const Interval& interval);

}  // namespace trireme::perf
