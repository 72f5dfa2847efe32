// Latency and bandwidth of a link from the measured times of messages, as cost models take them. Made by network tests;
// kept in the network file.
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

// The time of a message is latency + bytes / bandwidth. The residual says by what part that line misses the times of
// ping-pong, too long or too short, on average: 1 is a factor of two. (The root mean square, of logarithms.)
struct LinkFit {
  LinkCost cost;
  double residual = 0;
  int small_sizes = 0, large_sizes = 0;  // of messages that latency and bandwidth are made from
};

// What a fit needs to be chosen by. Small sizes are up to 256 B, large ones from 64 KiB on: fewer tell one size's
// behaviour, not a link's. A line that is wrong by a factor of two on average could choose worse than no measurement.
constexpr int kFewestSmallSizes = 3, kFewestLargeSizes = 3;
constexpr double kMostResidual = 1.0;
// Why nothing should be chosen by this fit, in words; empty: it is good.
std::string problem_of(const LinkFit& fit);

// Latency is what small messages take that are waited for: the median over ping-pong of up to 256 B. Bandwidth is what
// a stream of large ones reaches, as the pieces of an all-reduce are one: the median over one-way from 64 KiB on. Where
// no size is as small or as large, the smallest and the largest count. A line through all times would be drawn by the
// sizes in between, which transports send in one way or another. Error(bad_input) if there are not two sizes.
LinkFit fit_link(std::span<const MessageTime> ping_pong, std::span<const MessageTime> one_way);

// Of several links of one kind: the median of each figure.
LinkFit median_fit(std::span<const LinkFit> fits);

}  // namespace trireme::comm
