#include "trireme/base/barrier.hpp"

namespace trireme {

void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) noexcept {
  constexpr int kSpins = 4000;  // about a tenth of a millisecond
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

void Barrier::arrive_and_wait() noexcept {
  const std::uint32_t round = round_.load(std::memory_order_acquire);
  if (abandoned()) return;
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == members_) {
    arrived_.store(0, std::memory_order_relaxed);
    round_.fetch_add(1, std::memory_order_release);
    round_.notify_all();
  } else {
    wait_for_change(round_, round);
  }
}

void Barrier::abandon() noexcept {
  abandoned_.store(true, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
}

}  // namespace trireme
