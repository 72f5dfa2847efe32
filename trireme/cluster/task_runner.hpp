// What runs beside each task's program, on the task's host: it takes the Task from the supervisor, starts the program
// on its processors, sends on its output, passes signals to it, and says how it ended. Whoever starts processes
// (mpirun, srun) starts runners, so that output, processors and endings are handled in one way, whatever that is.
#pragma once

#include <string>

namespace trireme::cluster {

// The address is that of the supervisor, or of the agent of this host.
// Returns when the supervisor has released the task or is gone; in the latter case the program has been killed.
void run_task(const std::string& address, int task);

// From the task's program to its runner: what went wrong, before the program ends, so that the launcher can report the
// first error of a job first. With the exit code to come: the process may need a while to end, or never get there.
// False if no launcher has started this process, or it is gone: then the text is the caller's to print.
[[nodiscard]] bool report_error(const std::string& text, int exit_code);

}  // namespace trireme::cluster
