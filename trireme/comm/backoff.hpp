// Pauses of a polling rank. Compute threads own the cores, so it spins for some microseconds, then sleeps ever longer.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "trireme/base/clock.hpp"

namespace trireme::comm {

class Backoff {
 public:
  bool spin() {  // whether to poll again at once; true for the first kSpins polls
    if (looks_ >= kSpins) return false;
    ++looks_;
    return true;
  }
  void pause() {
    if (!spin()) std::this_thread::sleep_for(next_sleep());
  }
  // The next sleep, for callers that can be woken earlier.
  std::chrono::microseconds next_sleep() { return std::exchange(sleep_, std::min(sleep_ * 2, kLongestSleep)); }
  std::chrono::duration<double> waited() const { return SteadyClock::now() - start_; }

 private:
  static constexpr int kSpins = 50;  // one poll takes about 100 ns
  static constexpr std::chrono::microseconds kLongestSleep{100};

  SteadyClock::time_point start_ = SteadyClock::now();
  int looks_ = 0;
  std::chrono::microseconds sleep_{5};
};

}  // namespace trireme::comm
