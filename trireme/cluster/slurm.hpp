// Slurm as the one who gives the hosts and the way to them. What an allocation consists of is read from the variables
// that salloc and sbatch set; srun is the way. Used by the launcher's front end.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_list.hpp"
#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct SlurmAllocation {
  std::string job;               // its id
  std::vector<HostSlots> nodes;  // each with as many workers as tasks were asked for; one where none were
};

// The allocation that this process is in. Error(bad_input) where it is in none.
SlurmAllocation read_slurm_allocation();

// "2(x3),1", as Slurm writes it, is 2, 2, 2, 1. Empty where it is not of that form.
std::vector<int> parse_slurm_counts(const std::string& text);

// A step on one node, beside others. Error(unavailable) without srun.
HostReach srun_reach();

// One step of all runners, joined by Slurm's plugin of that name: "pmix" for Open MPI, "pmi2" for MPICH. The networks
// as mpirun_runners() has them.
RunnerStarter srun_runners(const std::string& plugin, const std::vector<std::string>& networks);

}  // namespace trireme::cluster
