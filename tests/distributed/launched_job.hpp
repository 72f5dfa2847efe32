// A `trireme launch` of this build that runs beside the test, with everything it starts: what it prints, which
// processes belong to it, and whether anything of it is left. Used by the tests of the launcher. Ends what is left when
// it goes.
#pragma once

#include "tests/distributed/running_command.hpp"

namespace trireme::testkit {

struct JobProcess {
  pid_t pid = 0;
  std::string command;  // arguments, separated by spaces
  int rank = -1;        // of a task's program, within its role; -1: another process
  std::string role;     // likewise: "worker", "ps"
};

class LaunchedJob : public RunningCommand {
 public:
  // The arguments follow `trireme launch`.
  explicit LaunchedJob(const Words& arguments, const Words& environment = {});
  ~LaunchedJob();

  // Processes that live now and that this launch has started, directly or not; with the launcher.
  std::vector<JobProcess> processes() const;
  // The programs of the tasks, by rank, servers after workers; waits until there are so many.
  std::vector<JobProcess> programs(std::size_t count) const;
  // Everything is gone: processes, the folder for shared segments, files in the folder for temporary ones.
  bool is_gone_within(std::chrono::milliseconds timeout) const;

 private:
  LaunchedJob(const std::string& mark, const Words& arguments, const Words& environment);

  std::string mark_;              // in the environment of all its processes
  mutable std::string segments_;  // the folder for shared segments, as the guard was told; empty: none was seen yet
};

std::string first_error(const LaunchedJob& job);  // the launcher's own

}  // namespace trireme::testkit
