#include "trireme/comm/shared_counter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "trireme/comm/backoff.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace trireme::comm {
namespace {

// Between two looks at whether the others live, and at whether they need this rank's help with their transfers.
constexpr std::int64_t kShortestSlice = 1'000'000;  // nanoseconds
constexpr std::int64_t kLongestSlice = 50'000'000;
constexpr int kSpins = 200;  // some microseconds

// The C++ library's own wait is for threads of one process only.
void futex_wait(std::atomic<std::uint32_t>& value, std::uint32_t old, std::int64_t nanoseconds) {
  const timespec slice{.tv_sec = 0, .tv_nsec = nanoseconds};
  syscall(SYS_futex, &value, FUTEX_WAIT, old, &slice, nullptr, 0);
}
void futex_wake_all(std::atomic<std::uint32_t>& value) {
  syscall(SYS_futex, &value, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

}  // namespace

void SharedCounter::raise(std::uint32_t value) {
  // In one total order with the sleeper's announcement and its look at the value: one of the two sees the other.
  value_.store(value, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake_all(value_);
}

void SharedCounter::wait_for(const Wait& wait, Communicator& communicator) {
  for (int i = 0; i < kSpins; ++i) {
    if (reached(wait.target)) return;
    relax();
  }
  const Backoff clock;
  for (std::int64_t slice = kShortestSlice;; slice = std::min(2 * slice, kLongestSlice)) {
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
    const bool there = static_cast<std::int32_t>(seen - wait.target) >= 0;
    if (!there) futex_wait(value_, seen, slice);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    if (there || reached(wait.target)) return;
    communicator.progress();
    communicator.check_peers();
    if (clock.waited() > communicator.timeout()) {
      communicator.fail_waiting(wait.operation, wait.peer, wait.bytes, clock.waited());
    }
  }
}

}  // namespace trireme::comm
