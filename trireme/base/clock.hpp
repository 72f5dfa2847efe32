// The monotonic clock for durations.
#pragma once

#include <chrono>

namespace trireme {

using SteadyClock = std::chrono::steady_clock;

inline double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}

}  // namespace trireme
