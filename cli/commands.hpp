// The subcommands of `trireme`. Each add_* declares its options on a subcommand of the parent and returns what to do
// when that subcommand was chosen; main() dispatches, and is the only place that catches errors.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace trireme::cli {

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code
};

Command add_bench(CLI::App& parent);
Command add_models(CLI::App& parent);
Command add_doctor(CLI::App& parent);

}  // namespace trireme::cli
