// The ranks of one node at work on values that lie in memory that all of them see. The values are cut into blocks, and
// whoever is free takes the next: a rank that lost its core for a while holds up one block, not its share of the whole.
// Whoever sums a block, the order of additions is the order of ranks. Used by the hierarchical all-reduce.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm {

// A number in shared memory that one rank raises and others wait for, across processes. Those who wait sleep in the
// kernel (futex) and cost nothing; raising makes a system call only when somebody sleeps. Lies in zeroed memory as it
// is, without construction.
class alignas(64) SharedCounter {  // a cache line of its own
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  // What was written before is seen by those who have seen the value.
  void raise(std::uint32_t value);
  // Returns when the value has reached `target`, in the sense of numbers that may wrap around. Fails like
  // Communicator::wait(), as a wait for `peer` in `operation`.
  struct Wait {
    std::uint32_t target;
    const char* operation;
    int peer;
    std::int64_t bytes;
  };
  void wait_for(const Wait& wait, Communicator& communicator);

 private:
  bool reached(std::uint32_t target) const { return static_cast<std::int32_t>(value() - target) >= 0; }

  std::atomic<std::uint32_t> value_;
  std::atomic<std::uint32_t> sleepers_;
};

static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "shared between processes");

// What a rank is about to reduce; the same on all ranks.
struct NodeJob {
  std::int64_t offset = -1;  // of the values in the arena; -1: elsewhere
  std::uint64_t count = 0;   // of floats
  Reduction reduction = Reduction::sum;
  bool operator==(const NodeJob&) const = default;
};

// At the start of each rank's piece of shared memory.
struct NodeControl {
  SharedCounter ready;    // the rank's values are there
  SharedCounter reduced;  // it has found no more blocks to reduce
  SharedCounter crossed;  // of the first rank: the sums of the other nodes are in
  SharedCounter copied;   // the rank has taken its copy
  NodeJob job;
  std::atomic<std::uint32_t> next_block[2];  // of the first rank: for odd and even rounds
};

class NodeTeam {
 public:
  // The memory has a NodeControl at its start.
  NodeTeam(Communicator& communicator, const SharedMemory& memory) : communicator_(communicator), memory_(memory) {}

  bool leads() const { return memory_.local_rank() == 0; }

  // One round: all ranks of the node call these in this order, the last three only if there are other nodes.
  // Begins a round: returns when the values of all ranks are there.
  void gather(const NodeJob& job);
  // Sums the sources, one per rank, into each target; sums may take the place of sources. Multiplies by `factor`.
  // Returns when all blocks are done.
  void reduce(std::span<float* const> sources, std::span<float* const> targets, std::size_t count, float factor);
  void announce_crossed() { control(0).crossed.raise(round_); }
  void wait_crossed() { wait(control(0).crossed, 0, "hierarchical all-reduce (across nodes)"); }
  void finish_copy();

 private:
  NodeControl& control(int local_rank) const { return *reinterpret_cast<NodeControl*>(memory_.data(local_rank)); }
  NodeControl& own() const { return control(memory_.local_rank()); }
  void wait(SharedCounter& counter, int local_rank, const char* operation);
  void wait_for_all(SharedCounter NodeControl::*counter, const char* operation);
  void check_job(int local_rank) const;

  Communicator& communicator_;
  const SharedMemory& memory_;
  std::uint32_t round_ = 0;
  NodeJob job_;
};

}  // namespace trireme::comm
