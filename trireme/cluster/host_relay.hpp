// Runs next to the supervisor for each other host: holds the connection (host_reach.hpp) to the agent there
// (host_agent.hpp) and connects to the supervisor for each task there, so that all runners look alike.
#pragma once

#include <string>
#include <vector>

namespace trireme::cluster {

// `command` is ssh's or srun's, `address` the supervisor's. Returns the command's exit code when it has ended, the host
// is silent, or standard input has ended and the host was left in good order.
int run_host_relay(const std::vector<std::string>& command, const std::string& address);

}  // namespace trireme::cluster
