#include "trireme/perf/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace trireme::perf {
namespace {

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> result(samples.begin(), samples.end());
  std::ranges::sort(result);
  return result;
}

// Interpolates between the two nearest samples, so that the median of an even number is the mean of the middle two.
double quantile(const std::vector<double>& ordered, double share) {
  const double position = share * static_cast<double>(ordered.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ordered.size() - 1);
  return std::lerp(ordered[below], ordered[above], position - static_cast<double>(below));
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  if (samples.empty()) return {};
  const std::vector<double> ordered = sorted(samples);
  const auto count = static_cast<double>(samples.size());
  Summary summary;
  summary.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / count;
  summary.median = quantile(ordered, 0.5);
  summary.p95 = quantile(ordered, 0.95);
  summary.minimum = ordered.front();
  summary.maximum = ordered.back();
  if (samples.size() > 1) {
    double squares = 0;
    for (const double sample : samples) squares += (sample - summary.mean) * (sample - summary.mean);
    summary.stddev = std::sqrt(squares / (count - 1));
    summary.stderr_mean = summary.stddev / std::sqrt(count);
  }
  return summary;
}

double median(std::span<const double> samples) { return samples.empty() ? 0 : quantile(sorted(samples), 0.5); }

double jitter(std::span<const double> samples) {
  const double middle = median(samples);
  std::vector<double> distances(samples.begin(), samples.end());
  for (double& distance : distances) distance = std::fabs(distance - middle);
  return 1.4826 * median(distances);
}

}  // namespace trireme::perf
