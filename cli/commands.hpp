// The subcommands of `trireme`. Each add_* declares its options on a subcommand of the parent and returns the action to
// run. Only main() dispatches and catches errors.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "trireme/cluster/launch_plan.hpp"

namespace trireme::cli {

using cluster::CommandCheck;
using cluster::LaunchNeeds;

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code
  // Called after parsing if the command can run as one of several processes. Throws Error(bad_input) if its options do
  // not suit such a launch. Empty: the command cannot be launched.
  std::function<LaunchNeeds(const comm::JobSize& size)> launch_needs = {};
  // After parsing: Error as the command itself would give for its options here, in a job of this size.
  std::function<void(const comm::JobSize& size)> check_options = {};
};

Command add_bench(CLI::App& parent);
Command add_train(CLI::App& parent);
Command add_eval(CLI::App& parent);
Command add_sweep(CLI::App& parent, const CommandCheck& check_options);
Command add_tune(CLI::App& parent);
Command add_compare(CLI::App& parent);
Command add_models(CLI::App& parent);
Command add_data(CLI::App& parent);
Command add_doctor(CLI::App& parent);
Command add_net(CLI::App& parent);
Command add_export(CLI::App& parent);
Command add_report(CLI::App& parent);
Command add_launch(CLI::App& parent, const CommandCheck& check_command);
std::vector<Command> add_launch_parts(CLI::App& parent);  // hidden: started by a launch

}  // namespace trireme::cli
