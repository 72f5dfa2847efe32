// A `trireme launch` of this build that runs beside the test, with everything it starts: what it prints, which
// processes belong to it, and whether anything of it is left. Used by the tests of the launcher. Ends what is left when
// it goes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {

struct JobProcess {
  pid_t pid = 0;
  std::string command;  // arguments, separated by spaces
  int rank = -1;        // of a task's program, within its role; -1: another process
  std::string role;     // likewise: "worker", "ps"
};

class LaunchedJob {
 public:
  // The arguments follow `trireme launch`. "NAME=value" may be added to the environment.
  explicit LaunchedJob(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});
  ~LaunchedJob();
  LaunchedJob(const LaunchedJob&) = delete;
  LaunchedJob& operator=(const LaunchedJob&) = delete;

  pid_t pid() const { return pid_; }
  const std::filesystem::path& temporary_folder() const { return temporary_; }  // its TMPDIR
  std::string out() const;
  std::string err() const;
  // Waits for the launcher's end; 128 + signal where one ended it. Fails the test, and gives -1, when that takes
  // longer.
  int exit_code(std::chrono::milliseconds timeout = std::chrono::seconds(30));
  bool wait_for_output(const std::string& text, std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;

  // Processes that live now and that this launch has started, directly or not; with the launcher.
  std::vector<JobProcess> processes() const;
  // The programs of the tasks, by rank, servers after workers; waits until there are so many.
  std::vector<JobProcess> programs(std::size_t count) const;
  // Everything is gone: processes, the folder for shared segments, files in the folder for temporary ones.
  bool is_gone_within(std::chrono::milliseconds timeout) const;

 private:
  std::string folder_of_segments() const;  // as the guard was told; empty: no guard was seen yet
  bool has_ended();

  std::string mark_;
  TemporaryFolder folder_;
  std::filesystem::path temporary_;
  mutable std::string segments_;
  pid_t pid_ = -1;
  int code_ = -1;
  bool reaped_ = false;
};

}  // namespace trireme::testkit
