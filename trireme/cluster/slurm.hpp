// Hosts from a Slurm allocation (variables of salloc and sbatch), reached by srun. Used by the launcher's front end.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_list.hpp"
#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct SlurmAllocation {
  std::string job;               // its id
  std::vector<HostSlots> nodes;  // each with as many workers as tasks requested; one if none were
};

SlurmAllocation read_slurm_allocation();  // of this process; Error(bad_input) if there is none

std::vector<int> parse_slurm_counts(const std::string& text);  // Slurm's "2(x3),1" is 2, 2, 2, 1. Empty if malformed

HostReach srun_reach();  // a step on one node, next to others. Error(unavailable) without srun

// One step of all runners, joined by this plugin: "pmix" for Open MPI, "pmi2" for MPICH. Networks: see mpirun.hpp.
RunnerStarter srun_runners(const std::string& plugin, const std::vector<std::string>& networks);

}  // namespace trireme::cluster
