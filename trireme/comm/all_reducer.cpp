#include "trireme/comm/all_reducer.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives/cost.hpp"
#include "trireme/comm/collectives/halving_doubling.hpp"
#include "trireme/comm/collectives/hierarchical.hpp"
#include "trireme/comm/collectives/library.hpp"
#include "trireme/comm/collectives/ring.hpp"
#include "trireme/comm/collectives/tree.hpp"

namespace trireme::comm {
namespace {

// Those that `automatic` compares: all whose order of additions is known.
constexpr std::array kCandidates{Algorithm::hierarchical, Algorithm::ring, Algorithm::halving_doubling,
                                 Algorithm::tree};

std::unique_ptr<AllReduceAlgorithm> make_algorithm(Algorithm algorithm, Communicator& communicator,
                                                   const AllReduceOptions& options, const SharedMemory* arena) {
  const PortOptions port{.wire = options.wire, .piece_bytes = options.piece_bytes};
  switch (algorithm) {
    case Algorithm::library:
      if (!communicator.has_library_all_reduce()) return nullptr;
      return std::make_unique<Library>(communicator);
    case Algorithm::ring:
      return std::make_unique<Ring>(communicator, port);
    case Algorithm::halving_doubling:
      return std::make_unique<HalvingDoubling>(communicator, port);
    case Algorithm::tree:
      return std::make_unique<Tree>(communicator, port);
    case Algorithm::hierarchical:
      return Hierarchical::make(communicator, port, arena);
    case Algorithm::automatic:
      break;
  }
  return nullptr;
}

}  // namespace

AllReducer::AllReducer(Communicator& communicator, AllReduceOptions options, const SharedMemory* arena)
    : communicator_(communicator), options_(options), layout_(layout_of(communicator)) {
  if (options.piece_bytes < 64 || options.piece_bytes % 64 != 0) {
    bad_input("all-reduce: pieces of {} bytes; a multiple of 64 is needed", options.piece_bytes);
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
    fail(ErrorKind::unavailable, "all-reduce '{}' cannot be had: {}", to_string(options_.algorithm),
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

Wire AllReducer::wire_for(std::int64_t bytes) const {
  const bool sends = layout_.nodes > 1 || (layout_.ranks > 1 && algorithm_for(bytes) != Algorithm::hierarchical);
  return sends ? options_.wire : Wire::fp32;
}

}  // namespace trireme::comm
