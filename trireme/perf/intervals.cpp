#include "trireme/perf/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <vector>

#include "trireme/perf/rank_test.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

constexpr double kEachSide = (1 - kConfidence) / 2;

// How many of n samples may be left out at either end so that the rest still lies around the true median: that is below
// all of these where no more than so many samples are below it, as coins fall. None: n is too small.
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

// Of values in order, less so many at either end.
Interval between(const std::vector<double>& ordered, std::optional<std::size_t> left_out) {
  const std::size_t place = left_out.value_or(0);
  return {ordered[place], ordered[ordered.size() - 1 - place], !left_out};
}

// The continued fraction of the incomplete beta function, by Lentz's method.
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kEnough = 1e-15;
  const auto away_from_zero = [](double value) { return std::fabs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), result = d;
  for (int step = 1; step < 1000; ++step) {
    const double m = step;
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / away_from_zero(1 + even * d);
    c = away_from_zero(1 + even / c);
    result *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / away_from_zero(1 + odd * d);
    c = away_from_zero(1 + odd / c);
    result *= d * c;
    if (std::fabs(d * c - 1) < kEnough) break;
  }
  return result;
}

// The regularised incomplete beta function.
double incomplete_beta(double a, double b, double x) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log1p(-x));
  // The fraction converges fast on this side of the mean, and the function is symmetric.
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

}  // namespace

Interval median_interval(std::span<const double> samples) {
  if (samples.empty()) return {};
  std::vector<double> ordered(samples.begin(), samples.end());
  std::sort(ordered.begin(), ordered.end());
  return between(ordered, left_out_at_each_end(ordered.size()));
}

Interval ratio_interval(std::span<const double> first, std::span<const double> second) {
  if (first.empty() || second.empty()) return {};
  std::vector<double> ratios;
  for (const double above : first) {
    for (const double below : second) ratios.push_back(above / below);
  }
  std::sort(ratios.begin(), ratios.end());
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

WelchTest welch_test(std::span<const double> first, std::span<const double> second) {
  if (first.size() < 2 || second.size() < 2) throw std::invalid_argument("Welch's test needs two samples of each set");
  const Summary a = summarize(first), b = summarize(second);
  const double var_a = a.stderr_mean * a.stderr_mean, var_b = b.stderr_mean * b.stderr_mean, both = var_a + var_b;
  WelchTest test{.difference = a.mean - b.mean};
  if (!(both > 0)) {  // samples without any spread
    test.interval = {test.difference, test.difference};
    test.degrees = static_cast<double>(first.size() + second.size() - 2);
    test.p = test.difference == 0 ? 1 : 0;
    return test;
  }
  test.degrees =
      both * both /
      (var_a * var_a / static_cast<double>(first.size() - 1) + var_b * var_b / static_cast<double>(second.size() - 1));
  const double error = std::sqrt(both), reach = student_quantile(1 - kConfidence, test.degrees) * error;
  test.interval = {test.difference - reach, test.difference + reach};
  test.p = student_two_sided(test.difference / error, test.degrees);
  return test;
}

double student_two_sided(double t, double degrees) {
  return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
}

double student_quantile(double share, double degrees) {
  double low = 0, high = 1;
  while (student_two_sided(high, degrees) > share) high *= 2;
  for (int step = 0; step < 200 && high - low > 1e-12 * high; ++step) {
    const double middle_t = (low + high) / 2;
    (student_two_sided(middle_t, degrees) > share ? low : high) = middle_t;
  }
  return (low + high) / 2;
}

}  // namespace trireme::perf
