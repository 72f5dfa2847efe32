// What runs beside the supervisor for each other host: it holds the connection (host_reach.hpp) to the agent there
// (host_agent.hpp) and connects to the supervisor in the name of each task on that host, so that the supervisor talks
// to all runners in one way, wherever they are. Started by the host starter.
#pragma once

#include <string>
#include <vector>

namespace trireme::cluster {

// The command is that of ssh or srun, the address the supervisor's. Returns its exit code when it has ended, when
// nothing comes from the host any more, or when standard input has ended and the host has been left in order.
int run_host_relay(const std::vector<std::string>& command, const std::string& address);

}  // namespace trireme::cluster
