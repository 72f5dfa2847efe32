// Runs next to each task's program: gets the Task from the supervisor, starts the program on its processors, forwards
// output and signals, and reports its end. mpirun and srun start runners too, so all jobs are handled alike.
#pragma once

#include <string>

#include "trireme/base/json.hpp"

namespace trireme::cluster {

// Returns when released, or when the supervisor is gone and the program killed. `address`: supervisor or host's agent.
void run_task(const std::string& address, int task);

// A program's error and coming exit code, sent to its runner before it ends (which may take long), so that the launcher
// can show the first error first. If false (no launcher), the caller prints the text.
[[nodiscard]] bool report_error(const std::string& text, int exit_code);

// The record of a command: written here or, in a launch, by the launcher on its own host. The path is checked where it
// is written; the launcher does so before it starts the tasks.
void check_record_path(const std::string& path);  // Error(bad_input), before a long run; empty: no record
void write_record(const Json& record, const std::string& path);

}  // namespace trireme::cluster
