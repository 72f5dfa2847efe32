#include "trireme/perf/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "trireme/perf/rank_test.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

constexpr double kEachSide = (1 - kConfidence) / 2;

// How many of n samples to drop at either end so that the rest still encloses the true median: the number of samples
// below it is binomial with p = 1/2. None: n is too small.
std::optional<std::size_t> left_out_at_each_end(std::size_t n) {
  const auto throws = static_cast<double>(n);
  double chance = 0;
  for (std::size_t heads = 0;; ++heads) {
    const auto k = static_cast<double>(heads);
    chance +=
        std::exp(std::lgamma(throws + 1) - std::lgamma(k + 1) - std::lgamma(throws - k + 1) - throws * std::log(2.0));
    if (chance > kEachSide) return heads == 0 ? std::nullopt : std::optional(heads - 1);
  }
}

// Sorted values without this many at either end.
Interval between(const std::vector<double>& ordered, std::optional<std::size_t> left_out) {
  const std::size_t place = left_out.value_or(0);
  return {ordered[place], ordered[ordered.size() - 1 - place], !left_out};
}

}  // namespace

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> ordered(samples.begin(), samples.end());
  std::ranges::sort(ordered);
  return between(ordered, left_out_at_each_end(ordered.size()));
}

Interval ratio_interval(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return {};
  std::vector<double> ratios;
  for (const double above : first) {
    for (const double below : second) ratios.push_back(above / below);
  }
  std::ranges::sort(ratios);
  Interval interval = between(ratios, largest_u(first.size(), second.size(), kEachSide));
  const double ratio = median(first) / median(second);
  interval.low = std::min(interval.low, ratio);
  interval.high = std::max(interval.high, ratio);
  return interval;
}

Interval scaled(const Interval& interval, double factor) {
  return {factor * interval.low, factor * interval.high, interval.is_range};
}

const char* kind_text(const Interval& interval) { return interval.is_range ? "range" : "95 %"; }

}  // namespace trireme::perf
