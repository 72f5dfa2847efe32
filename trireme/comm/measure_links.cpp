#include "trireme/comm/measure_links.hpp"

#include <algorithm>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/comm/collectives.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t kProbeBytes = 64, kStreamBytes = 4 << 20;
constexpr int kProbeRounds = 20, kStreamRounds = 3;
constexpr int kTag = 0;

// Each rank sends to the next one of the ring and receives from the one before. Seconds of a round, after a first one.
double exchange(Communicator& communicator, const std::vector<int>& ring, std::size_t bytes, int rounds) {
  const auto own = std::ranges::find(ring, communicator.rank()) - ring.begin();
  const auto size = std::ssize(ring);
  const int next = ring[static_cast<std::size_t>((own + 1) % size)];
  const int before = ring[static_cast<std::size_t>((own + size - 1) % size)];
  const std::vector<std::byte> sent(bytes);
  std::vector<std::byte> received(bytes);
  const AbandonOnError abandon_on_error(communicator);
  SteadyClock::time_point start;
  for (int round = 0; round <= rounds; ++round) {
    if (round == 1) start = SteadyClock::now();
    const auto receive = communicator.start_receive(received, before, kTag);
    communicator.wait(communicator.start_send(sent, next, kTag));
    communicator.wait(receive);
  }
  return seconds_since(start) / rounds;
}

// Collective; ring: of this rank, empty if it takes no part. By the slowest rank.
LinkCost measure(Communicator& communicator, const std::vector<int>& ring, const LinkCost& otherwise) {
  struct Seconds {
    double small = 0, large = 0;
  };
  Seconds own;
  barrier(communicator);
  if (ring.size() > 1) {
    own.small = exchange(communicator, ring, kProbeBytes, kProbeRounds);
    own.large = exchange(communicator, ring, kStreamBytes, kStreamRounds);
  }
  Seconds slowest;
  for (const Seconds& each : all_gather_value(communicator, own)) {
    slowest.small = std::max(slowest.small, each.small);
    slowest.large = std::max(slowest.large, each.large);
  }
  if (slowest.large <= 0) return otherwise;
  const double beyond_latency = std::max(slowest.large - slowest.small, slowest.large / 2);
  return {.latency_seconds = slowest.small, .bytes_per_second = kStreamBytes / beyond_latency};
}

}  // namespace

CostModel measure_links(Communicator& communicator) {
  communicator.set_context("measuring the links");
  std::vector<int> of_node, first_of_nodes, nodes_seen;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    const int node = communicator.members()[static_cast<std::size_t>(rank)].node;
    if (node == communicator.self().node) of_node.push_back(rank);
    if (std::ranges::find(nodes_seen, node) != nodes_seen.end()) continue;
    nodes_seen.push_back(node);
    first_of_nodes.push_back(rank);
  }
  if (of_node.front() != communicator.rank()) first_of_nodes.clear();
  CostModel cost;
  cost.in_node = measure(communicator, of_node, cost.in_node);
  cost.across = measure(communicator, first_of_nodes, cost.across);
  communicator.set_context("");
  return cost;
}

}  // namespace trireme::comm
