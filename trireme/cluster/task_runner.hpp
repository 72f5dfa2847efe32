// What runs beside each task's program, on the task's host: it takes the Task from the supervisor, starts the program
// on its processors, sends on its output, passes signals to it, and says how it ended. Whoever starts processes
// (mpirun, srun) starts runners, so that output, processors and endings are handled in one way, whatever that is.
#pragma once

#include <string>

namespace trireme::cluster {

// The address is that of the supervisor, or of the agent of this host.
// Returns when the supervisor has released the task or is gone; in the latter case the program has been killed.
void run_task(const std::string& address, int task);

}  // namespace trireme::cluster
