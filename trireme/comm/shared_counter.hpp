// A number in shared memory that one rank raises and others wait for, across processes. Those who wait sleep in the
// kernel (futex) and cost nothing; raising makes a system call only when somebody sleeps. Lies in zeroed memory as it
// is, without construction. Used by the all-reduce inside a node.
#pragma once

#include <atomic>
#include <cstdint>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

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

}  // namespace trireme::comm
