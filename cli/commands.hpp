// The subcommands of `trireme`. Each add_* declares its options on a subcommand of the parent and returns the action to
// run. Only main() dispatches and catches errors.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "trireme/comm/job_size.hpp"

namespace trireme::cli {

// What a command needs from the launch that starts it.
struct LaunchNeeds {
  std::string protocol = "auto";       // how its processes talk, as in --protocol
  bool uses_every_protocol = false;    // uses all protocols that the launch allows
  bool survives_lost_workers = false;  // the others continue if a worker is lost
  bool needs_first_worker = false;     // but not if worker 0 is lost

  // MPI cannot continue without a rank, and starts its processes itself.
  bool talks_mpi() const { return protocol == "mpi" || protocol == "grpc+mpi"; }
};

struct Command {
  CLI::App* app = nullptr;
  std::function<int()> run;  // returns the exit code
  // Called after parsing if the command can run as one of several processes. Throws Error(bad_input) if its options do
  // not suit such a launch. Empty: the command cannot be launched.
  std::function<LaunchNeeds(const comm::JobSize& size)> launch_needs = {};
};

// Error(bad_input) unless main() would accept this command line (without the program name) and can launch it so.
using CommandCheck = std::function<LaunchNeeds(const std::vector<std::string>& arguments, const comm::JobSize& size)>;

// Options added to a command during the lifetime of this object appear in this group of the command's help.
class OptionGroup {
 public:
  OptionGroup(CLI::App& app, const std::string& name) : app_(app), previous_(app.option_defaults()->get_group()) {
    app.option_defaults()->group(name);
  }
  ~OptionGroup() { app_.option_defaults()->group(previous_); }
  OptionGroup(const OptionGroup&) = delete;
  OptionGroup& operator=(const OptionGroup&) = delete;

 private:
  CLI::App& app_;
  std::string previous_;
};

Command add_bench(CLI::App& parent);
Command add_train(CLI::App& parent);
Command add_eval(CLI::App& parent);
Command add_sweep(CLI::App& parent);
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
