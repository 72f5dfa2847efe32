#include "trireme/comm/all_reducer.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/comm/collectives/algorithms.hpp"

namespace trireme::comm {
namespace {

constexpr Names<Algorithm, 6> kAlgorithms{{
    {Algorithm::automatic, "auto"},
    {Algorithm::library, "library"},
    {Algorithm::ring, "ring"},
    {Algorithm::halving_doubling, "halving_doubling"},
    {Algorithm::tree, "tree"},
    {Algorithm::hierarchical, "hierarchical"},
}};

constexpr Names<Wire, 3> kWires{{
    {Wire::fp32, "fp32"},
    {Wire::fp16, "fp16"},
    {Wire::bf16, "bf16"},
}};

double ring_seconds(const LinkCost& link, double add_rate, int ranks, double bytes) {
  const double moved = bytes * (ranks - 1) / ranks;
  return 2 * (ranks - 1) * link.latency_seconds + 2 * moved / link.bytes_per_second + moved / add_rate;
}

// Not for `library`, whose cost is unknown, or `automatic`.
double predicted_seconds(Algorithm algorithm, const CostModel& cost, const Layout& layout, std::int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  const int ranks = layout.ranks;
  const LinkCost& link = layout.nodes > 1 ? cost.across : cost.in_node;  // the slowest link used
  const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));   // log2, rounded up
  switch (algorithm) {
    case Algorithm::ring:
      return ring_seconds(link, cost.add_bytes_per_second, ranks, size);
    case Algorithm::halving_doubling: {
      // In the first rounds all ranks of a node compete for the network.
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
      // All ranks of a node sum concurrently, a share each; with other nodes they also copy.
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

// Uses the transport's library.
class Library : public AllReduceAlgorithm {
 public:
  explicit Library(Communicator& communicator) : communicator_(communicator) {
    communicator.prepare_library_all_reduce();
  }
  void reduce(std::span<float> values, Reduction reduction) override {
    communicator_.wait(communicator_.start_library_all_reduce(values, reduction));
  }

 private:
  Communicator& communicator_;
};

// Candidates of `automatic`: all with a known order of additions.
constexpr std::array kCandidates{Algorithm::hierarchical, Algorithm::ring, Algorithm::halving_doubling,
                                 Algorithm::tree};

std::unique_ptr<AllReduceAlgorithm> make_algorithm(Algorithm algorithm, Communicator& communicator,
                                                   const AllReduceOptions& options, const SharedMemory* arena) {
  switch (algorithm) {
    case Algorithm::library:
      if (!communicator.has_library_all_reduce()) return nullptr;
      return std::make_unique<Library>(communicator);
    case Algorithm::ring:
      return make_ring(communicator, options);
    case Algorithm::halving_doubling:
      return make_halving_doubling(communicator, options);
    case Algorithm::tree:
      return make_tree(communicator, options);
    case Algorithm::hierarchical:
      return make_hierarchical(communicator, options, arena);
    case Algorithm::automatic:
      break;
  }
  return nullptr;
}

}  // namespace

Algorithm parse_algorithm(std::string_view name) { return parse_name(name, kAlgorithms, "all-reduce algorithm"); }
std::string to_string(Algorithm algorithm) { return std::string(name_of(algorithm, kAlgorithms)); }
Wire parse_wire(std::string_view name) { return parse_name(name, kWires, "wire format"); }
std::string to_string(Wire wire) { return std::string(name_of(wire, kWires)); }

Layout layout_of(const Communicator& communicator) {
  std::vector<int> ranks_of_node;
  for (const Member& member : communicator.members()) {
    ranks_of_node.resize(std::max(ranks_of_node.size(), static_cast<std::size_t>(member.node) + 1));
    ++ranks_of_node[member.node];
  }
  // In a subgroup, node indices need not be contiguous.
  std::erase(ranks_of_node, 0);
  return {.ranks = communicator.size(),
          .nodes = static_cast<int>(ranks_of_node.size()),
          .most_ranks_per_node = *std::max_element(ranks_of_node.begin(), ranks_of_node.end())};
}

double predicted_seconds(const CostModel& cost, const Layout& layout, std::int64_t bytes) {
  if (layout.ranks == 1) return 0;
  double best = predicted_seconds(kCandidates.front(), cost, layout, bytes);
  for (const Algorithm candidate : kCandidates)
    best = std::min(best, predicted_seconds(candidate, cost, layout, bytes));
  return best;
}

AllReducer::AllReducer(Communicator& communicator, AllReduceOptions options, const SharedMemory* arena)
    : communicator_(communicator), options_(options), layout_(layout_of(communicator)) {
  if (options.piece_bytes < 64 || options.piece_bytes % 64 != 0) {
    bad_input("all-reduce: the piece size is {} bytes, but must be a multiple of 64", options.piece_bytes);
  }
  if (options.algorithm == Algorithm::library && options.wire != Wire::fp32) {
    bad_input("all-reduce '{}' cannot convert to {} on the wire; choose another algorithm, or fp32",
              to_string(options.algorithm), to_string(options.wire));
  }
  if (communicator.size() == 1) return;
  const auto make = [&](Algorithm algorithm) {
    auto& made = implementations_[static_cast<std::size_t>(algorithm)];
    made = make_algorithm(algorithm, communicator, options_, arena);
    return made != nullptr;
  };
  if (options_.algorithm == Algorithm::automatic) {
    for (const Algorithm candidate : kCandidates) make(candidate);
  } else if (!make(options_.algorithm)) {
    fail(ErrorKind::unavailable, "all-reduce '{}' is not available: {}", to_string(options_.algorithm),
         options_.algorithm == Algorithm::library
             ? fmt::format("protocol '{}' has no library for it", communicator.protocol())
             : "the system refuses to share memory between the ranks of a node; 'ring' needs none");
  }
}

AllReducer::~AllReducer() = default;

void AllReducer::reduce(std::span<float> values, Reduction reduction) {
  if (communicator_.size() == 1 || values.empty()) return;
  const Algorithm algorithm = algorithm_for(static_cast<std::int64_t>(values.size_bytes()));
  implementations_[static_cast<std::size_t>(algorithm)]->reduce(values, reduction);
}

void AllReducer::reduce_scatter(std::span<float> values, Reduction reduction) {
  if (communicator_.size() == 1 || values.empty()) return;
  const Algorithm algorithm = algorithm_for(static_cast<std::int64_t>(values.size_bytes()));
  implementations_[static_cast<std::size_t>(algorithm)]->reduce_scatter(values, reduction);
}

void AllReducer::all_gather(std::span<float> values) {
  if (communicator_.size() == 1 || values.empty()) return;
  const auto& in_node = implementations_[static_cast<std::size_t>(Algorithm::hierarchical)];
  if (in_node != nullptr && in_node->all_gather(values)) return;
  if (gathering_ring_ == nullptr) {
    gathering_ring_ = make_ring(communicator_, {.piece_bytes = options_.piece_bytes});
  }
  gathering_ring_->all_gather(values);
}

Algorithm AllReducer::algorithm_for(std::int64_t bytes) const {
  if (options_.algorithm != Algorithm::automatic) return options_.algorithm;
  Algorithm best = Algorithm::tree;
  double best_seconds = predicted_seconds(best, options_.cost, layout_, bytes);
  for (const Algorithm candidate : kCandidates) {
    if (implementations_[static_cast<std::size_t>(candidate)] == nullptr) continue;
    const double seconds = predicted_seconds(candidate, options_.cost, layout_, bytes);
    if (seconds >= best_seconds) continue;
    best = candidate;
    best_seconds = seconds;
  }
  return best;
}

std::optional<double> AllReducer::seconds_for(std::int64_t bytes) const {
  const Algorithm algorithm = algorithm_for(bytes);
  const bool in_memory = layout_.nodes == 1 && algorithm == Algorithm::hierarchical;
  if (layout_.ranks == 1 || in_memory || algorithm == Algorithm::library) return std::nullopt;
  return predicted_seconds(algorithm, options_.cost, layout_, wire_for(bytes) == Wire::fp32 ? bytes : bytes / 2);
}

Wire AllReducer::wire_for(std::int64_t bytes) const {
  const bool sends = layout_.nodes > 1 || (layout_.ranks > 1 && algorithm_for(bytes) != Algorithm::hierarchical);
  return sends ? options_.wire : Wire::fp32;
}

}  // namespace trireme::comm
