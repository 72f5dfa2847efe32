// Fits latency and bandwidth to measured message times, for cost models. Used by network tests and the network file.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/comm/all_reducer.hpp"

namespace trireme::comm {

struct MessageTime {
  std::int64_t bytes = 0;
  double seconds = 0;
};

// Message time is latency + bytes / bandwidth. The residual is the average relative error of this line for ping-pong
// times, in either direction: 1 means a factor of two. (The root mean square of logarithms.)
struct LinkFit {
  LinkCost cost;
  double residual = 0;
  int small_sizes = 0, large_sizes = 0;  // message sizes behind latency and bandwidth
};

// Minimum quality of a usable fit. Small sizes are up to 256 B, large ones from 64 KiB: fewer sizes would show one
// size's behavior, not the link's. A line off by a factor of two on average could choose worse than no measurement.
constexpr int kFewestSmallSizes = 3, kFewestLargeSizes = 3;
constexpr double kMostResidual = 1.0;
std::string problem_of(const LinkFit& fit);  // why the fit is unusable; empty if it is good

// Latency is the median ping-pong time up to 256 B; bandwidth the median one-way rate from 64 KiB, as all-reduce pieces
// form a stream too. Without such sizes, the smallest and largest count. A line through all times would follow the
// sizes in between, where transports switch methods. Error(bad_input) with fewer than two sizes.
LinkFit fit_link(std::span<const MessageTime> ping_pong, std::span<const MessageTime> one_way);

LinkFit median_fit(std::span<const LinkFit> fits);  // of each figure

}  // namespace trireme::comm
