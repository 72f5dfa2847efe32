// The starter of jobs on several hosts: for each host a relay here (host_relay.hpp), which holds the connection to an
// agent there (host_agent.hpp). The agents start the runners of their tasks; or an MPI launcher does, which tasks that
// talk MPI need, and the agents wait for them. Used by the launcher's front end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/ports.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct RemoteHost {
  std::string name;        // as those who reach it know it
  std::string program;     // the `trireme` binary there
  PortsWanted ports = {};  // for its tasks
};
// The same as options of the commands that run there.
void add_port_options(const PortsWanted& ports, std::vector<std::string>& words);

// How an MPI launcher starts one runner for each task of the job, on the task's host, task i as rank i.
struct RunnerCommand {
  std::string program;             // the `trireme` binary on the hosts
  std::vector<std::string> words;  // the same on all hosts
  std::string mark;                // of the job on the other hosts, for what the MPI launcher starts there itself
};
using RunnerStarter =
    std::function<StartCommand(const Job& job, const std::string& folder, const RunnerCommand& runner)>;

// The program is the `trireme` binary on this machine. Tasks belong to the hosts that they name. Without a
// RunnerStarter the agents start the runners.
Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts,
                     const RunnerStarter& runners = {});

}  // namespace trireme::cluster
