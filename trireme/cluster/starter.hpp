// How the runners of a job's tasks get started, as commands for the Supervisor to run: one process per task here, all
// of them by mpirun, which workers that talk MPI need (mpirun.hpp), or on other hosts (host_starter.hpp). Each ends in
// `trireme launch-task`, which is run_task().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trireme/cluster/job.hpp"

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
using Starter = std::function<std::vector<StartCommand>(const Job& job, const std::string& folder)>;

// The program is the `trireme` binary on this machine.
Starter process_starter(const std::string& program);

}  // namespace trireme::cluster
