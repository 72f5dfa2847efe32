// The ranks of one node reducing values in shared memory, for the hierarchical all-reduce. Ranks claim blocks
// dynamically, so a descheduled rank delays one block only. Additions are always in rank order.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/shared_memory.hpp"

namespace trireme::comm {

// A number in shared memory that one rank raises and others, in any process, wait for. Waiters sleep on a futex;
// raising makes a system call only if someone sleeps. Zeroed memory is a valid counter without construction.
class alignas(64) SharedCounter {  // a cache line of its own
 public:
  std::uint32_t value() const { return value_.load(std::memory_order_acquire); }
  void raise(std::uint32_t value);  // writes before it are visible with the value
  // Waits until the value has reached `target`, modulo wraparound. Fails like Communicator::wait().
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

struct NodeJob {             // what to reduce; the same on all ranks
  std::int64_t offset = -1;  // of the values in the arena; -1: not in it
  std::uint64_t count = 0;   // of floats
  Reduction reduction = Reduction::sum;
  bool operator==(const NodeJob&) const = default;
};

struct NodeControl {      // at the start of each rank's piece of shared memory
  SharedCounter ready;    // the rank's values are available
  SharedCounter reduced;  // it has found no more blocks to reduce
  SharedCounter crossed;  // first rank only: the other nodes' sums are in
  SharedCounter copied;   // the rank has taken its copy
  NodeJob job;
  std::atomic<std::uint32_t> next_block[2];  // first rank only: for odd and even rounds
};

class NodeTeam {
 public:
  NodeTeam(Communicator& communicator, const SharedMemory& memory) : communicator_(communicator), memory_(memory) {}

  bool leads() const { return memory_.local_rank() == 0; }

  // All ranks of the node call the following in this order, the last three only if there are other nodes.
  // gather() starts a round and returns when the values of all ranks are available.
  void gather(const NodeJob& job);
  // Sums the sources in this range of elements alone into one target, in the same order. Waits for all ranks.
  void reduce_range(std::span<float* const> sources, float* target, std::size_t begin, std::size_t end, float factor);
  // Sums the sources, one per rank, times `factor`, into each target, which may alias a source. Waits for all blocks.
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
