// The all-reduce of training: made once per job, used for every bucket of every step, without allocating. Which
// algorithm runs is chosen by the caller or, by size and topology, from a cost model. All ranks end with the same bits,
// and, but for `library`, the order of additions depends on the sizes alone, so that runs repeat exactly.
// Made by gradient synchronisation; used from its communication thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm {

enum class Algorithm {
  automatic,
  library,           // what the transport's library does
  ring,              // 2 (N - 1) steps around a ring, in pieces: the least bytes per rank; for large messages
  halving_doubling,  // as few bytes in 2 log2 N steps, with partners further and further away
  tree,              // binomial tree up and down: least latency; for small messages
  hierarchical,      // through shared memory inside each node, a ring of one rank per node across
};
// The names are those of --all-reduce: auto, library, ring, halving_doubling, tree, hierarchical.
Algorithm parse_algorithm(std::string_view name);  // an unknown name is Error(bad_input) that lists them
std::string to_string(Algorithm algorithm);

// How floats travel in messages, also between ranks of one node if the algorithm sends any: `hierarchical` alone
// does not, and `library` knows fp32 only. Sums are made in fp32 at every stop; with 16 bits each partial sum is
// rounded once per hop.
enum class Wire { fp32, fp16, bf16 };
Wire parse_wire(std::string_view name);
std::string to_string(Wire wire);

// The time of a message is latency + bytes / bandwidth. `trireme net` measures these; the defaults are typical.
struct LinkCost {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};
struct CostModel {
  LinkCost in_node{.latency_seconds = 2e-6, .bytes_per_second = 8e9};  // a message between ranks of one node
  LinkCost across{.latency_seconds = 10e-6, .bytes_per_second = 3e9};
  // Telling another rank by memory that both see, and copying there: what `hierarchical` does inside a node, whatever
  // transport carries messages.
  LinkCost shared_memory{.latency_seconds = 2e-6, .bytes_per_second = 8e9};
  double add_bytes_per_second = 8e9;  // summing into memory
};

struct AllReduceOptions {
  Algorithm algorithm = Algorithm::automatic;
  Wire wire = Wire::fp32;
  CostModel cost{};
  // Values travel in pieces, so that one is summed while others are in flight: of at least this size.
  std::int64_t piece_bytes = 128 << 10;
};

// Where the ranks are. The same on all of them, so that all choose alike.
struct Layout {
  int ranks = 1;
  int nodes = 1;
  int most_ranks_per_node = 1;
};
Layout layout_of(const Communicator& communicator);

class AllReduceAlgorithm;

class AllReducer {
 public:
  // Collective. Values that lie inside the arena, at the same offset on all ranks, are reduced where they are: inside a
  // node each byte is then read once and written once. The communicator and the arena must outlive this.
  // An algorithm that the communicator cannot offer is Error(unavailable): `library` if the transport has none,
  // `hierarchical` if memory cannot be shared. `library` with a wire of 16 bits is Error(bad_input).
  explicit AllReducer(Communicator& communicator, AllReduceOptions options = {}, const SharedMemory* arena = nullptr);
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Collective: same size and reduction on all ranks, in the same order. In place.
  void reduce(std::span<float> values, Reduction reduction);

  // What reduce() will run for so many bytes, `automatic` resolved: for printing and for tests.
  Algorithm algorithm_for(std::int64_t bytes) const;
  // The form in which they will travel then: fp32 if there are no messages.
  Wire wire_for(std::int64_t bytes) const;
  Communicator& communicator() const { return communicator_; }

 private:
  Communicator& communicator_;
  AllReduceOptions options_;
  Layout layout_;
  std::array<std::unique_ptr<AllReduceAlgorithm>, 6> implementations_;  // by Algorithm, as far as they may be needed
};

}  // namespace trireme::comm
