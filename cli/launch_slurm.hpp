// Slurm's part of `trireme launch`: a launch inside of an allocation takes its nodes and its number of workers from
// there; a launch that is to be submitted becomes a batch script, which is handed to sbatch and holds the same launch.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/launch_plan.hpp"

namespace trireme::cli {

struct SubmitOptions {
  bool submit = false;
  int nodes = 0;
  int tasks_per_node = 0;  // workers on each; 0: one
  int cpus_per_task = 0;   // 0: whole nodes
  std::string time, partition, account, constraint, job_name;
  std::vector<std::string> more;  // further options of sbatch
};

// On the subcommand of `trireme launch`, beside its own.
void add_slurm_options(CLI::App& app, LaunchOptions& options, SubmitOptions& submit);

// Fills in the nodes. Error(bad_input) outside of an allocation,
// and with the numbers where the tasks are too many for it.
void take_allocation(LaunchOptions& options);

// Prints what was submitted, or with --dry-run the script. The app is that of `trireme launch`, as the user has filled
// it: the options of the launch in the script are those. Returns the exit code.
int submit_launch(const CLI::App& app, LaunchOptions options, const SubmitOptions& submit,
                  const CommandCheck& check_command);
// Error(bad_input) where options of the submission are given without --submit.
void check_not_submitted(const CLI::App& app);

}  // namespace trireme::cli
