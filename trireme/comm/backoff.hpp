// The pauses between two looks at something that another rank will change. Compute threads own the cores: a wait spins
// only for a few microseconds, then it sleeps, longer and longer.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "trireme/base/clock.hpp"

namespace trireme::comm {

class Backoff {
 public:
  // Whether to look again at once: so for the first few looks.
  bool spin() {
    if (looks_ >= kSpins) return false;
    ++looks_;
    return true;
  }
  void pause() {
    if (!spin()) std::this_thread::sleep_for(next_sleep());
  }
  // How long to sleep then; for those who can be woken before.
  std::chrono::microseconds next_sleep() { return std::exchange(sleep_, std::min(sleep_ * 2, kLongestSleep)); }
  std::chrono::duration<double> waited() const { return SteadyClock::now() - start_; }

 private:
  static constexpr int kSpins = 50;  // looks take some 100 ns each
  static constexpr std::chrono::microseconds kLongestSleep{100};

  SteadyClock::time_point start_ = SteadyClock::now();
  int looks_ = 0;
  std::chrono::microseconds sleep_{5};
};

}  // namespace trireme::comm
