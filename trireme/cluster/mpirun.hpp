// Open MPI's mpirun as starter of runners for tasks that use MPI, here or on ssh hosts. Task i becomes rank i.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

// `program` is the `trireme` binary on this machine. Error(unavailable) without mpirun.
Starter mpi_starter(const std::string& program);

// ssh from here starts mpirun's daemons, which connect back. Ranks may use only these networks ("10.0.0.0/24"); empty:
// all. Error(unavailable) without mpirun or ssh; Error(bad_input) for an ssh option that mpirun cannot pass on.
RunnerStarter mpirun_runners(const SshOptions& ssh, const std::vector<std::string>& networks);

}  // namespace trireme::cluster
