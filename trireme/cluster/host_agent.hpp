// Runs once on every host of a job, as the remote command of host_reach.hpp: starts the runners of the host's tasks, or
// waits for those of an MPI launcher, and relays their messages to host_relay.hpp over standard input and output. When
// these end or fall silent, it ends everything of the job on its host.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/ports.hpp"

namespace trireme::cluster {

struct HostAgentOptions {
  std::string program;     // the `trireme` binary, for runners and guard
  std::vector<int> tasks;  // indices in the job
  PortsWanted ports;       // for the tasks, workers before servers; claimed while they run
  std::string folder;      // working directory, if it exists
  std::string address;     // where runners started by others connect; empty: the agent starts them
};

// Returns when all runners have left or the peer is gone; nothing of the job is left on this host then.
// Error(bad_input) if a port is in use, Error(failed) if a runner cannot be started.
void run_host_agent(const HostAgentOptions& options);

}  // namespace trireme::cluster
