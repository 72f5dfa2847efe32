// Barrier for the threads of groups of cores (runtime/batch_split.hpp). If one fails, abandon() releases the others.
#pragma once

#include <atomic>
#include <cstdint>

namespace trireme {

class Barrier {
 public:
  explicit Barrier(int members) : members_(members) {}

  // Returns, with all members' writes visible, when all have arrived or the barrier was abandoned. For one thread of an
  // OpenMP region too.
  void arrive_and_wait() noexcept;
  void abandon() noexcept;  // releases everyone, now and in future
  bool abandoned() const noexcept { return abandoned_.load(std::memory_order_acquire); }

 private:
  const int members_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> abandoned_{false};
};

// Between two looks of a thread that spins.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until the value changes: spins first, since most waits take microseconds, then sleeps to free the core.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept;

}  // namespace trireme
