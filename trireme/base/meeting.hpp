// Where the threads that drive groups of cores wait for each other (runtime/batch_split.hpp). A barrier that can be
// given up: when one of them fails, the others are let go and find out.
#pragma once

#include <atomic>
#include <cstdint>

namespace trireme {

class Meeting {
 public:
  explicit Meeting(int members) : members_(members) {}

  int members() const { return members_; }
  // Returns when all members have come, or when the meeting was given up. What a member wrote before it came is seen by
  // all afterwards. May be called inside an OpenMP region by one of its threads.
  void come() noexcept;
  // Lets everyone go, now and in future.
  void give_up() noexcept;
  bool given_up() const noexcept { return given_up_.load(std::memory_order_acquire); }

 private:
  const int members_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> given_up_{false};
};

// Waits until the value is no longer the old one: spinning at first, because what is waited for mostly comes within
// microseconds, then in the kernel, because the core may be wanted by someone else.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;

}  // namespace trireme
