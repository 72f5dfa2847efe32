// Marks where our own output begins on a connection to another host, since shells print at startup and containers
// consume input. Used by host_check.hpp, host_agent.hpp, host_relay.hpp and ship.hpp.
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme::cluster {

inline constexpr std::string_view kLauncherGreeting = "trireme\n";  // begins the launcher's query

// All our commands on other hosts begin standard output with this; anything before it is skipped.
inline constexpr std::string_view kHostGreeting = "-- trireme begins --\n";
inline constexpr std::size_t kMostChatter = 64U << 10U;  // bytes before the greeting until we give up
inline constexpr const char* kChatterProblem = "its shell prints more than 64 KB at the start";

inline std::size_t behind_greeting(std::string_view text) {
  const std::size_t begin = text.find(kHostGreeting);
  return begin == std::string_view::npos || begin > kMostChatter ? std::string_view::npos
                                                                 : begin + kHostGreeting.size();
}

}  // namespace trireme::cluster
