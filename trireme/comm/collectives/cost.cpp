#include "trireme/comm/collectives/cost.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "trireme/base/error.hpp"

namespace trireme::comm {
namespace {

double ring_seconds(const LinkCost& link, double add_rate, int ranks, double bytes) {
  const double moved = bytes * (ranks - 1) / ranks;
  return 2 * (ranks - 1) * link.latency_seconds + 2 * moved / link.bytes_per_second + moved / add_rate;
}

}  // namespace

Layout layout_of(const Communicator& communicator) {
  std::vector<int> ranks_of_node;
  for (const Member& member : communicator.members()) {
    ranks_of_node.resize(std::max(ranks_of_node.size(), static_cast<std::size_t>(member.node) + 1));
    ++ranks_of_node[member.node];
  }
  // The nodes of a part of the job need not count from 0 on.
  std::erase(ranks_of_node, 0);
  return {.ranks = communicator.size(),
          .nodes = static_cast<int>(ranks_of_node.size()),
          .most_ranks_per_node = *std::max_element(ranks_of_node.begin(), ranks_of_node.end())};
}

double predicted_seconds(Algorithm algorithm, const CostModel& cost, const Layout& layout, std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  const int ranks = layout.ranks;
  const LinkCost& link = layout.nodes > 1 ? cost.across : cost.in_node;  // the slowest that is passed
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));   // log2, rounded up
  switch (algorithm) {
    case Algorithm::ring:
      return ring_seconds(link, cost.add_bytes_per_second, ranks, size);
    case Algorithm::halving_doubling: {
      // In the first rounds all ranks of a node want the network at the same time.
      const int sharing = layout.nodes > 1 ? layout.most_ranks_per_node : 1;
      const double moved = size * (ranks - 1) / ranks;
      const bool power_of_two = std::has_single_bit(static_cast<unsigned>(ranks));
      const double extra = power_of_two ? 0 : 2 * (link.latency_seconds + size / link.bytes_per_second);
      const int steps = std::bit_width(static_cast<unsigned>(ranks)) - 1;  // log2, rounded down
      return 2 * steps * link.latency_seconds + 2 * moved * sharing / link.bytes_per_second +
             moved / cost.add_bytes_per_second + extra;
    }
    case Algorithm::tree:
      return 2 * rounds * (link.latency_seconds + size / link.bytes_per_second) +
             rounds * size / cost.add_bytes_per_second;
    case Algorithm::hierarchical: {
      // All ranks of a node sum at the same time, a share each; with other nodes they copy as well.
      const double inside = 4 * cost.shared_memory.latency_seconds + size / cost.add_bytes_per_second;
      if (layout.nodes == 1) return inside;
      return inside + ring_seconds(cost.across, cost.add_bytes_per_second, layout.nodes, size) +
             2 * cost.shared_memory.latency_seconds + size / cost.shared_memory.bytes_per_second;
    }
    case Algorithm::automatic:
    case Algorithm::library:
      break;
  }
  fail(ErrorKind::failed, "no prediction for all-reduce algorithm '{}'", to_string(algorithm));
}

}  // namespace trireme::comm
