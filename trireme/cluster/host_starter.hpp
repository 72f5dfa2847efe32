// The starter of jobs on several hosts: for each host a relay here (host_relay.hpp), which holds the connection to an
// agent there (host_agent.hpp), which starts the runners of the host's tasks. Used by the launcher's front end.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct RemoteHost {
  std::string name;             // as those who reach it know it
  std::string program;          // the `trireme` binary there
  std::vector<int> ports = {};  // that its tasks listen on
};

// The program is the `trireme` binary on this machine. Tasks belong to the hosts that they name.
Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts);

}  // namespace trireme::cluster
