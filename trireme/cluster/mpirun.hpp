// mpirun (Open MPI's) as the one who starts the runners of tasks that talk MPI: on this machine, or on hosts that ssh
// reaches. Task i becomes rank i. Used by the launcher's front end.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

// The program is the `trireme` binary on this machine. Error(unavailable) where there is no mpirun.
Starter mpi_starter(const std::string& program);

// Its daemons on the hosts are started by ssh from here, and connect back to here. The networks, as "10.0.0.0/24", are
// those over which the ranks may talk; none: all. Error(unavailable) where there is no mpirun, or no ssh;
// Error(bad_input) names an option of ssh that mpirun cannot pass on.
RunnerStarter mpirun_runners(const SshOptions& ssh, const std::vector<std::string>& networks);

}  // namespace trireme::cluster
