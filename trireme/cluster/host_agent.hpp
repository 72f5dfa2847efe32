// What runs once on every host of a job, as the command of the connection (host_reach.hpp) to that host: it starts the
// runners of the host's tasks, or waits for those that an MPI launcher starts, and carries their words to the
// supervisor and back, over its standard input and output. When these end, or nothing comes over them any more, it ends
// everything of the job on its host. The other end is the relay (host_relay.hpp).
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/ports.hpp"

namespace trireme::cluster {

struct HostAgentOptions {
  std::string program;     // the `trireme` binary, for runners and guard
  std::vector<int> tasks;  // indices in the job
  PortsWanted ports;       // for them, workers before servers as in the job: claimed for as long as they run
  std::string folder;      // to work in, where there is such a folder; else where we were put
  std::string address;     // where runners that others start will connect; empty: the agent starts them
};

// Returns when all runners have left or the other end is gone; nothing of the job is left on this host then.
// Error(bad_input) where a port is in use, Error(failed) where a runner cannot be started.
void run_host_agent(const HostAgentOptions& options);

}  // namespace trireme::cluster
