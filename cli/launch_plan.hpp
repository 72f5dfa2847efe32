// What a launch will start, worked out in advance: the tasks with their processors, addresses and environment, and who
// starts them. Made and executed by `trireme launch`; --dry-run prints it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/launch_hosts.hpp"
#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/ports.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cli {

struct LaunchOptions {
  std::optional<int> workers;  // nothing: the default for the hosts
  TaskDemand tasks;            // the plan fills in its number of workers
  HostOptions hosts;
  std::string starter = "auto";
  std::string program;  // empty: this binary
  std::string output_folder;
  bool keep_going = false;
  bool dry_run = false;
  std::vector<std::string> command;
};

struct LaunchPlan {
  cluster::JobDescription job;
  std::vector<HostShare> hosts;
  cluster::Starter starter;
  cluster::PortClaims ports;  // held while the job runs
};

// Returns what the command needs. Error(bad_input) if the command or the options are wrong.
LaunchNeeds check_launch(const LaunchOptions& options, const CommandCheck& check_command);

// Throws Error(bad_input) or Error(unavailable) for everything that can be checked before starting a process.
LaunchPlan plan_launch(LaunchOptions options, const CommandCheck& check_command);

std::string placement_text(const LaunchPlan& plan);  // for people: a "trireme: " line, plus warnings
std::string commands_text(const LaunchPlan& plan);   // as one could type them; without the job's secret

}  // namespace trireme::cli
