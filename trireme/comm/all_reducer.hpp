// The all-reduce for training: made once per job, allocation-free, with an algorithm set by the caller or picked by a
// cost model. All ranks get the same bits; except with `library`, the order of additions depends only on sizes, so runs
// repeat exactly. Made by gradient synchronization and used from its communication thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm {

enum class Algorithm {
  automatic,
  library,           // whatever the transport's library does
  ring,              // 2 (N - 1) steps around a ring, in pieces: fewest bytes per rank; for large messages
  halving_doubling,  // as few bytes in 2 log2 N steps, with ever more distant partners
  tree,              // binomial tree up and down: lowest latency; for small messages
  hierarchical,      // shared memory within each node, a ring of one rank per node across
};
// Names as in --all-reduce: auto, library, ring, halving_doubling, tree, hierarchical.
Algorithm parse_algorithm(std::string_view name);  // unknown name: Error(bad_input) listing the valid ones
std::string to_string(Algorithm algorithm);

// The format of floats in messages, including messages within a node (`hierarchical` sends none there). `library`
// supports only fp32. Ranks always sum in fp32; with 16 bits, each partial sum is rounded once per hop.
enum class Wire { fp32, fp16, bf16 };
Wire parse_wire(std::string_view name);
std::string to_string(Wire wire);

// Message time is latency + bytes / bandwidth. `trireme net` measures both; the defaults are typical.
struct LinkCost {
  double latency_seconds = 0;
  double bytes_per_second = 0;
};
struct CostModel {
  LinkCost in_node{.latency_seconds = 2e-6, .bytes_per_second = 8e9};  // a message between ranks of one node
  LinkCost across{.latency_seconds = 10e-6, .bytes_per_second = 3e9};
  // Signaling and copying through shared memory, as `hierarchical` does within a node on any transport.
  LinkCost shared_memory{.latency_seconds = 2e-6, .bytes_per_second = 8e9};
  double add_bytes_per_second = 8e9;  // summing into memory
};

struct AllReduceOptions {
  Algorithm algorithm = Algorithm::automatic;
  Wire wire = Wire::fp32;
  CostModel cost{};
  // Minimum piece size. Values travel in pieces so that one is summed while others are in flight.
  std::int64_t piece_bytes = 128 << 10;
};

// Rank placement; identical on all ranks, so that all pick the same algorithm.
struct Layout {
  int ranks = 1;
  int nodes = 1;
  int most_ranks_per_node = 1;
};
Layout layout_of(const Communicator& communicator);
// The seconds of an all-reduce with `automatic`, by the cost model.
double predicted_seconds(const CostModel& cost, const Layout& layout, std::int64_t bytes);

class AllReduceAlgorithm;

class AllReducer {
 public:
  // Collective. Values in the arena, at equal offsets on all ranks, are reduced in place: within a node each byte is
  // read and written once. Communicator and arena must outlive this. Error(unavailable) for `library` without transport
  // support or `hierarchical` without shared memory; Error(bad_input) for `library` with a 16-bit wire.
  explicit AllReducer(Communicator& communicator, AllReduceOptions options = {}, const SharedMemory* arena = nullptr);
  ~AllReducer();
  AllReducer(const AllReducer&) = delete;
  AllReducer& operator=(const AllReducer&) = delete;

  // Collective and in place; same size and reduction on all ranks, in the same order.
  void reduce(std::span<float> values, Reduction reduction);
  // The halves of an all-reduce, between which each rank works on its slice_of() the values alone. The first gives it
  // the same bits as reduce(), but sends less only with a ring, within a node, or by halving among 2, 4, 8, ... ranks.
  // The second distributes the slices, in fp32.
  void reduce_scatter(std::span<float> values, Reduction reduction);
  void all_gather(std::span<float> values);

  // What reduce() will run for this size, with `automatic` resolved.
  Algorithm algorithm_for(std::int64_t bytes) const;
  // The seconds that the cost model gives reduce() for this size, by the link that it takes; none without one.
  std::optional<double> seconds_for(std::int64_t bytes) const;
  // The format it will use then; fp32 if there are no messages.
  Wire wire_for(std::int64_t bytes) const;
  Communicator& communicator() const { return communicator_; }

 private:
  Communicator& communicator_;
  AllReduceOptions options_;
  Layout layout_;
  std::array<std::unique_ptr<AllReduceAlgorithm>, 6> implementations_;  // by Algorithm; only those that may be needed
  std::unique_ptr<AllReduceAlgorithm> gathering_ring_;
};

}  // namespace trireme::comm
