// What a launch will start, worked out in advance: the tasks with their processors, addresses and environment, and who
// starts them. Made and executed by `trireme launch`; --dry-run prints it.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/launch_hosts.hpp"
#include "trireme/cluster/ports.hpp"
#include "trireme/cluster/starter.hpp"
#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

// What a command asks of the launch that starts it.
struct LaunchNeeds {
  std::string protocol = "auto";       // how its processes talk, as --protocol has it
  bool uses_every_protocol = false;    // by itself, as far as the launch allows
  bool survives_lost_workers = false;  // the others go on where a worker is lost
  int least_workers = 0;               // who must be left, if they follow a loss together; 0: they do not
  bool needs_first_worker = false;     // but not without worker 0
  std::string record_file = {};        // that the command writes; "-": stdout; empty: none

  // Which does not go on without a rank, and starts its processes itself.
  bool talks_mpi() const { return protocol == "mpi" || protocol == "grpc+mpi"; }
};

// Error(bad_input) where this is not a command line (without the program) that main() would take, or that can be
// launched so.
using CommandCheck = std::function<LaunchNeeds(const std::vector<std::string>& arguments, const comm::JobSize& size)>;

struct LaunchPlan {
  JobDescription job;
  std::string record_file;
  std::vector<HostShare> hosts;
  Starter starter;
  PortClaims ports;  // for as long as the job runs
};

// Error(bad_input) if this many Slurm nodes with places for workers do not suffice.
void check_places(const LaunchOptions& options, int nodes, int places);

// Returns what the command needs, for the workers in the options. Error(bad_input) if either is wrong.
LaunchNeeds check_launch(const LaunchOptions& options, const CommandCheck& check_command);

// Throws Error(bad_input) or Error(unavailable) for everything that can be checked before starting a process.
LaunchPlan plan_launch(LaunchOptions options, const CommandCheck& check_command);

std::string placement_text(const LaunchPlan& plan);  // for people: a "trireme: " line, plus warnings
std::string commands_text(const LaunchPlan& plan);   // as one could type them; without the job's secret

}  // namespace trireme::cluster
