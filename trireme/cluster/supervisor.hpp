// Runs a job: starts its tasks, shows their output, passes on Ctrl-C, and ends everything when one task fails, with the
// first error first; or goes on without it, where that is a worker and the job survives it. When the workers are done,
// so is the job: servers get a moment to leave. It knows what happens from the runners beside the tasks
// (task_runner.hpp), which connect to it; it parses nobody's output. Used by `trireme launch`; when it is done, no
// process and no file of the job is left.
#pragma once

#include <chrono>
#include <string>

#include "trireme/cluster/console.hpp"
#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

inline constexpr int kInterruptedCode = 130;  // as a shell has it for a command that Ctrl-C ended

struct SupervisorOptions {
  std::string program;  // the `trireme` binary, for the guard
  ConsoleOptions console;
  std::chrono::milliseconds start_timeout{60'000};  // until all runners have connected
  std::chrono::milliseconds servers_leave{3'000};   // after the last worker, until servers are asked to end
  std::chrono::milliseconds grace{2'000};  // after a failure, from asking the other tasks to end to killing them
};

// Returns the job's exit code: 0, that of the first task that failed, or kInterruptedCode.
int supervise(JobDescription job, const Starter& starter, const SupervisorOptions& options);

}  // namespace trireme::cluster
