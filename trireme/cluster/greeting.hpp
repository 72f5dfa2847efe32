// By which the two ends of a connection to another host find each other's words. On the way there, and back, others may
// have their say: a shell prints at its start, a container reads its input. Used by the checks of hosts
// (host_check.hpp), the agent and the relay (host_agent.hpp, host_relay.hpp), and by what copies the program
// (ship.hpp).
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme::cluster {

// The launcher begins its question with this.
inline constexpr std::string_view kLauncherGreeting = "trireme\n";

// Everything of ours on another host begins its standard output with this; what comes before it is others'.
inline constexpr std::string_view kHostGreeting = "-- trireme begins --\n";
inline constexpr std::size_t kMostChatter = 64U << 10U;  // bytes of it before we give up
inline constexpr const char* kChatterProblem = "its shell prints more than 64 KB at the start";

// Where our own words begin; npos: the greeting has not come.
inline std::size_t behind_greeting(std::string_view text) {
  const std::size_t begin = text.find(kHostGreeting);
  return begin == std::string_view::npos || begin > kMostChatter ? std::string_view::npos
                                                                 : begin + kHostGreeting.size();
}

}  // namespace trireme::cluster
