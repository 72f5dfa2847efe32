// A `trireme` of this build that runs beside the test: what it prints, and how it ends. Used by the tests of jobs whose
// processes are started one by one, and by LaunchedJob. Kills the process when it goes.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/temporary_folder.hpp"

namespace trireme::testkit {

using Words = std::vector<std::string>;

class RunningCommand {
 public:
  // The arguments follow `trireme`. "NAME=value" may be added to the environment.
  explicit RunningCommand(const Words& arguments, const Words& environment = {});
  ~RunningCommand();
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  pid_t pid() const { return pid_; }
  const std::filesystem::path& temporary_folder() const { return temporary_; }  // its TMPDIR
  std::string out() const;
  std::string err() const;
  // Waits for the end; 128 + signal where one ended it. Fails the test, and gives -1, when that takes longer.
  int exit_code(std::chrono::milliseconds timeout = std::chrono::seconds(30));
  bool wait_for_output(const std::string& text, std::chrono::milliseconds timeout = std::chrono::seconds(30)) const;

 private:
  bool has_ended();

  TemporaryFolder folder_;
  std::filesystem::path temporary_;
  pid_t pid_ = -1;
  int code_ = -1;
  bool reaped_ = false;
};

// Whether all that the command has started ends within a while.
bool leaves_nothing(const RunningCommand& command);

bool has(const std::string& text, const std::string& part);
std::string read_file(const std::filesystem::path& path);
bool wait_until(const std::function<bool()>& condition, std::chrono::milliseconds timeout);

}  // namespace trireme::testkit
