// Commands for the Supervisor that start the runners of a job: a process per task, mpirun for workers that use MPI
// (mpirun.hpp), or on other hosts. All end in `trireme launch-task`, which is run_task().
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
  std::vector<std::string> dropped_variables = {};  // see ChildOptions
  std::vector<int> tasks = {};                      // whose runners it starts
  bool reaches_other_host = false;                  // exits in good order when its standard input ends
  bool waits_for_hosts = false;                     // start it only when the agents of all hosts are ready
};

// Called when the job starts, with the job's private folder.
using Starter = std::function<std::vector<StartCommand>(const JobDescription& job, const std::string& folder)>;

Starter process_starter(const std::string& program);  // the `trireme` binary on this machine

struct RemoteHost {
  std::string name;        // as HostReach knows it
  std::string program;     // the `trireme` binary there
  PortsWanted ports = {};  // for its tasks
};
// Appends these ports as options of commands that run on a host.
void add_port_options(const PortsWanted& ports, std::vector<std::string>& words);

// How an MPI launcher starts one runner per task on the task's host, task i as rank i.
struct RunnerCommand {
  std::string program;             // the `trireme` binary on the hosts
  std::vector<std::string> words;  // the same on all hosts
  std::string job_id;              // on other hosts, for what the MPI launcher itself starts there
};
using RunnerStarter =
    std::function<StartCommand(const JobDescription& job, const std::string& folder, const RunnerCommand& runner)>;

// For several hosts: a relay here per host (host_relay.hpp), connected to an agent there (host_agent.hpp). Agents start
// runners or, if `runners` is set, wait for those of an MPI launcher.
Starter host_starter(const std::string& program, const HostReach& reach, const std::vector<RemoteHost>& hosts,
                     const RunnerStarter& runners = {});

}  // namespace trireme::cluster
