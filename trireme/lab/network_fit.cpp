#include "trireme/lab/network_fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

constexpr std::int64_t kSmallBytes = 256, kLargeBytes = 64 << 10;

double latency_of(std::span<const MessageTime> times, std::int64_t least_bytes) {
  std::vector<double> seconds;
  for (const MessageTime& time : times) {
    if (time.bytes <= std::max(kSmallBytes, least_bytes)) seconds.push_back(time.seconds);
  }
  return perf::median(seconds);
}

double bandwidth_of(std::span<const MessageTime> times, std::int64_t most_bytes) {
  std::vector<double> rates;
  for (const MessageTime& time : times) {
    if (time.bytes >= std::min(kLargeBytes, most_bytes))
      rates.push_back(static_cast<double>(time.bytes) / time.seconds);
  }
  return perf::median(rates);
}

}  // namespace

LinkFit fit_link(std::span<const MessageTime> ping_pong, std::span<const MessageTime> one_way) {
  const auto [least, most] = std::minmax_element(
      ping_pong.begin(), ping_pong.end(), [](const MessageTime& a, const MessageTime& b) { return a.bytes < b.bytes; });
  if (ping_pong.empty() || least->bytes == most->bytes || one_way.empty()) {
    bad_input("latency and bandwidth cannot be told from one size of message; measure two at least");
  }
  LinkFit fit{.cost = {.latency_seconds = latency_of(ping_pong, least->bytes),
                       .bytes_per_second = bandwidth_of(one_way, most->bytes)}};
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
  for (const LinkFit& fit : fits) {
    latencies.push_back(fit.cost.latency_seconds);
    bandwidths.push_back(fit.cost.bytes_per_second);
    residuals.push_back(fit.residual);
  }
  return {.cost = {.latency_seconds = perf::median(latencies), .bytes_per_second = perf::median(bandwidths)},
          .residual = perf::median(residuals)};
}

}  // namespace trireme::lab
