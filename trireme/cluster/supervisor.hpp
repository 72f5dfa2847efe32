// Runs a job for `trireme launch`: starts tasks, shows output, passes on Ctrl-C. If a task fails, ends everything and
// reports the first error first, or continues if the job survives it. When the workers are done, servers get a moment
// to leave. Runners (task_runner.hpp) report events; no output is parsed. No process or file is left behind.
#pragma once

#include <chrono>
#include <string>

#include "trireme/cluster/console.hpp"
#include "trireme/cluster/job_description.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

inline constexpr int kInterruptedCode = 130;  // a shell's code for Ctrl-C

struct SupervisorOptions {
  std::string program;  // the `trireme` binary, for the guard
  ConsoleOptions console;
  std::string record_file = {};                     // for the record that a task sends; empty: none is expected
  std::chrono::milliseconds start_timeout{60'000};  // until all runners have connected
  std::chrono::milliseconds servers_leave{3'000};   // from the last worker's end until servers are asked to end
  std::chrono::milliseconds grace{2'000};  // after a failure, from asking the other tasks to end to killing them
};

// Returns the job's exit code: 0, that of the first failed task, or kInterruptedCode.
int supervise(JobDescription job, const Starter& starter, const SupervisorOptions& options);

}  // namespace trireme::cluster
