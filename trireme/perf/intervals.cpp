#include "trireme/perf/intervals.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <stdexcept>
#include <vector>

#include "trireme/perf/statistics.hpp"

namespace trireme::perf {
namespace {

constexpr int kResamples = 2000;

class Resampler {
 public:
  explicit Resampler(std::uint64_t seed) : random_(seed) {}

  double median_of_draw(std::span<const double> samples) {
    draw_.resize(samples.size());
    // The engine's numbers are the standard's, those of its distributions are each library's own.
    for (double& value : draw_) value = samples[random_() % samples.size()];
    return median(draw_);
  }

 private:
  std::mt19937_64 random_;
  std::vector<double> draw_;
};

Interval middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<std::size_t>(std::lround(share * static_cast<double>(values.size() - 1)))];
  };
  return {at((1 - kConfidence) / 2), at((1 + kConfidence) / 2)};
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

Interval bootstrap_median(std::span<const double> samples, std::uint64_t seed) {
  if (samples.empty()) return {};
  if (samples.size() == 1) return {samples[0], samples[0]};
  Resampler resampler(seed);
  std::vector<double> medians(kResamples);
  for (double& value : medians) value = resampler.median_of_draw(samples);
  return middle(std::move(medians));
}

Interval bootstrap_ratio(std::span<const double> first, std::span<const double> second, std::uint64_t seed) {
  if (first.empty() || second.empty()) return {};
  Resampler resampler(seed);
  std::vector<double> ratios(kResamples);
  for (double& ratio : ratios) {
    const double above = resampler.median_of_draw(first);
    ratio = above / resampler.median_of_draw(second);
  }
  return middle(std::move(ratios));
}

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
