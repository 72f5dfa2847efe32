// Runs next to each task's program: gets the Task from the supervisor, starts the program on its processors, forwards
// output and signals, and reports its end. mpirun and srun start runners too, so all jobs are handled alike.
#pragma once

#include <string>

namespace trireme::cluster {

// Returns when released, or when the supervisor is gone and the program killed. `address`: supervisor or host's agent.
void run_task(const std::string& address, int task);

// A program's error and coming exit code, sent to its runner before it ends (which may take long), so that the launcher
// can show the first error first. If false (no launcher), the caller prints the text.
[[nodiscard]] bool report_error(const std::string& text, int exit_code);

}  // namespace trireme::cluster
