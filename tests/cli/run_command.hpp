// Runs a program the way a user does and gives back what it printed and its exit code. Used by the tests of the command
// line. A program that does not end in time is killed with everything it started.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace trireme::testkit {

struct CommandResult {
  int exit_code = -1;  // 128 + signal when a signal ended it, as a shell has it
  bool timed_out = false;
  std::string out, err;
};

struct CommandOptions {
  std::chrono::milliseconds timeout{60000};
  // Sends this signal after the delay, as a user pressing Ctrl-C (SIGINT) would. 0: none.
  int signal = 0;
  std::chrono::milliseconds signal_delay{0};
  // Delays the signal further until stdout contains this text.
  std::string signal_after_output = {};
  std::vector<std::string> environment = {};  // "NAME=value", added to this process's
};

// arguments[0] is the program. Standard input is empty.
CommandResult run_command(const std::vector<std::string>& arguments, const CommandOptions& options = {});

// The `trireme` binary of this build with arguments.
CommandResult run_trireme(std::vector<std::string> arguments, const CommandOptions& options = {});

}  // namespace trireme::testkit
