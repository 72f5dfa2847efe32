// Shared by `sweep`, `tune` and `compare`: finding plans, the machine they refer to, starting and resuming studies,
// and what they print: what will run, a line per run, a bar with the time left, and the final table.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "trireme/lab/study/study_folder.hpp"
#include "trireme/lab/study/study_plan.hpp"
#include "trireme/lab/study/sweep.hpp"

namespace trireme::cli {

Json find_plan(const std::string& plan);  // a file's or a ready-made one; else Error(bad_input)

lab::StudyMachine this_machine();  // the part of it that this process may use

// Error(bad_input) if this process is part of a launch: `who`, as in "a sweep", starts its own processes.
void check_not_launched(const std::string& who);

// Error(bad_input) if the folder, which need not exist, holds another plan.
void check_plan(const std::filesystem::path& folder, const Json& plan);
void take_plan(const lab::StudyFolder& folder, const Json& plan);  // writes it; same error

std::string go_on_text();  // how to resume a study that ended early

// What `sweep` and `compare` share once they know what to run.
struct StudyRun {
  const lab::SweepSetup& setup;
  std::filesystem::path out;
  Json plan;                      // as stored in the folder
  std::string who;                // see check_not_launched()
  std::string participants = {};  // printed after the plan's title, question and numbers
  std::function<std::string(const lab::SweepResult& result)> conclusion;
  std::string dry_run_end = {};  // printed after the commands of a dry run
};
int dry_run(const StudyRun& study);
int run_study(const StudyRun& study);  // returns the exit code: of an interrupt, or of a failure if a run failed

// "[=====>      ] 12 of 40 runs, about 3m20s left; batch-size=16, 4s"
std::string bar_text(const lab::SweepProgress& progress, const std::string& cell, double run_seconds);
std::string result_table(const std::vector<lab::StudyCell>& cells, const lab::SweepResult& result);
std::string shortfall_text(const std::vector<lab::StudyCell>& cells,
                           const lab::SweepResult& result);  // failures, no time

}  // namespace trireme::cli
