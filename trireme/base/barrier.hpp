// The barrier at which the threads that drive groups of cores wait for each other (runtime/batch_split.hpp). It can be
// abandoned: when one thread fails, the others are released and find out.
#pragma once

#include <atomic>
#include <cstdint>

namespace trireme {

class Barrier {
 public:
  explicit Barrier(int members) : members_(members) {}

  int members() const { return members_; }
  // Returns when all members have arrived, or when the barrier was abandoned. All see afterwards what a member wrote
  // before it arrived. May be called inside an OpenMP region by one of its threads.
  void arrive_and_wait() noexcept;
  // Releases everyone, now and in future.
  void abandon() noexcept;
  bool abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }

 private:
  const int members_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> abandoned_{false};
};

// Waits until the value is no longer the old one: spinning at first, because what is waited for mostly comes within
// microseconds, then in the kernel, because the core may be wanted by someone else.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;

}  // namespace trireme
