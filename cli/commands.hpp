// The subcommands of `trireme`. Each add_* declares its options on a subcommand of the parent and returns what to do
// when that subcommand was chosen; main() dispatches, and is the only place that catches errors.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

namespace trireme::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code
};

// Throws Error(bad_input) where this is not a command line (without the program) that main() would take.
using CommandCheck = std::function<void(const std::vector<std::string>& arguments)>;

Command add_bench(CLI::App& parent);
Command add_models(CLI::App& parent);
Command add_doctor(CLI::App& parent);
Command add_launch(CLI::App& parent, const CommandCheck& check_command);
Command add_launch_task(CLI::App& parent);   // hidden: started by a launch
Command add_launch_guard(CLI::App& parent);  // likewise

}  // namespace trireme::cli
