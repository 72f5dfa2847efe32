#include "trireme/comm/link_fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::comm {
namespace {

constexpr std::int64_t kSmallBytes = 256, kLargeBytes = 64 << 10;

std::vector<double> small_times(std::span<const MessageTime> times, std::int64_t limit) {
  std::vector<double> seconds;
  for (const MessageTime& time : times) {
    if (time.bytes <= limit) seconds.push_back(time.seconds);
  }
  return seconds;
}

std::vector<double> large_rates(std::span<const MessageTime> times, std::int64_t limit) {
  std::vector<double> rates;
  for (const MessageTime& time : times) {
    if (time.bytes >= limit) rates.push_back(static_cast<double>(time.bytes) / time.seconds);
  }
  return rates;
}

}  // namespace

std::string problem_of(const LinkFit& fit) {
  if (fit.small_sizes < kFewestSmallSizes) {
    return fmt::format(
        "latency was fitted from {} of messages up to 256 B, but {} are needed; use --min-bytes 64 or less",
        fit.small_sizes == 1 ? "1 size" : fmt::format("{} sizes", fit.small_sizes), kFewestSmallSizes);
  }
  if (fit.large_sizes < kFewestLargeSizes) {
    return fmt::format(
        "bandwidth was fitted from {} of messages from 64 KiB on, but {} are needed; use --max-bytes 256Ki or more",
        fit.large_sizes == 1 ? "1 size" : fmt::format("{} sizes", fit.large_sizes), kFewestLargeSizes);
  }
  if (!(fit.residual >= 0 && fit.residual <= kMostResidual)) {
    return fmt::format(
        "the residual is {:.0f} %, but at most {:.0f} % is allowed; measure longer (--seconds-per-size) on a quieter "
        "machine",
        100 * fit.residual, 100 * kMostResidual);
  }
  return "";
}

LinkFit fit_link(std::span<const MessageTime> ping_pong, std::span<const MessageTime> one_way) {
  const auto [least, most] = std::minmax_element(
      ping_pong.begin(), ping_pong.end(), [](const MessageTime& a, const MessageTime& b) { return a.bytes < b.bytes; });
  if (ping_pong.empty() || least->bytes == most->bytes || one_way.empty()) {
    bad_input("latency and bandwidth cannot be determined from one message size; measure at least two");
  }
  const auto count = [](const std::vector<double>& list) { return static_cast<int>(list.size()); };
  LinkFit fit{.cost = {.latency_seconds = perf::median(small_times(ping_pong, std::max(kSmallBytes, least->bytes))),
                       .bytes_per_second = perf::median(large_rates(one_way, std::min(kLargeBytes, most->bytes)))},
              .small_sizes = count(small_times(ping_pong, kSmallBytes)),
              .large_sizes = count(large_rates(one_way, kLargeBytes))};
  double squares = 0;
  for (const MessageTime& time : ping_pong) {
    const double predicted = fit.cost.latency_seconds + static_cast<double>(time.bytes) / fit.cost.bytes_per_second;
    squares += std::pow(std::log(predicted / time.seconds), 2);
  }
  fit.residual = std::expm1(std::sqrt(squares / static_cast<double>(ping_pong.size())));
  return fit;
}

LinkFit median_fit(std::span<const LinkFit> fits) {
  std::vector<double> latencies, bandwidths, residuals;
  LinkFit result = fits.front();
  for (const LinkFit& fit : fits) {
    latencies.push_back(fit.cost.latency_seconds);
    bandwidths.push_back(fit.cost.bytes_per_second);
    residuals.push_back(fit.residual);
    result.small_sizes = std::min(result.small_sizes, fit.small_sizes);
    result.large_sizes = std::min(result.large_sizes, fit.large_sizes);
  }
  result.cost = {.latency_seconds = perf::median(latencies), .bytes_per_second = perf::median(bandwidths)};
  result.residual = perf::median(residuals);
  return result;
}

}  // namespace trireme::comm
