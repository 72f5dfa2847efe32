// How the runners of a job's tasks get started, as commands for the Supervisor to run: one process per task here, all
// of them by mpirun, which workers that talk MPI need (mpirun.hpp), or on other hosts. Each ends in `trireme
// launch-task`, which is run_task(). Used by the launcher's front end.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/ports.hpp"

namespace trireme::cluster {

struct StartCommand {
  std::string name;  // for messages: "mpirun"
  std::vector<std::string> command;
  std::map<std::string, std::string> environment = {};
  std::vector<std::string> dropped_variables = {};  // as ChildOptions has them
  std::vector<int> tasks = {};                      // whose runners it starts
  bool reaches_other_host = false;                  // leaves, in order, when its standard input ends
  bool waits_for_hosts = false;                     // is started when the agents of all hosts are there
};

// Made when the job starts, with the job's private folder.
using Starter = std::function<std::vector<StartCommand>(const JobDescription& job, const std::string& folder)>;

// The program is the `trireme` binary on this machine.
Starter process_starter(const std::string& program);

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
  std::string job_id;              // of the job on the other hosts, for what the MPI launcher starts there itself
};
using RunnerStarter =
    std::function<StartCommand(const JobDescription& job, const std::string& folder, const RunnerCommand& runner)>;

// For jobs on several hosts: for each host a relay here (host_relay.hpp), which holds the connection to an agent there
// (host_agent.hpp). The agents start the runners of their tasks; or an MPI launcher does, which tasks that talk MPI
// need, and the agents wait for them. Tasks belong to the hosts that they name.
Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts,
                     const RunnerStarter& runners = {});

}  // namespace trireme::cluster
