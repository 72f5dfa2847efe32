// What the commands that make studies share: plans by file or by name, the machine that plans count with, and how a
// study begins and goes on. Used by `sweep`, `tune` and `compare`.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "trireme/lab/study_folder.hpp"
#include "trireme/lab/study_plan.hpp"
#include "trireme/lab/sweep.hpp"

namespace trireme::cli {

// The JSON of a file, or of a ready-made plan. Error(bad_input) where it is neither.
Json find_plan(const std::string& plan);

// What this process may use of it.
lab::StudyMachine this_machine();

// Error(bad_input) where this process is one of several: `who`, as in "a sweep", starts its own.
void check_not_launched(const std::string& who);

// Error(bad_input) where the folder, which need not exist, has another plan.
void check_plan(const std::filesystem::path& folder, const Json& plan);
// Leaves the plan in the folder. Error(bad_input) likewise.
void take_plan(const lab::StudyFolder& folder, const Json& plan);

// How to go on with a study that has ended early.
std::string go_on_text();

// What `sweep` and `compare` do once they know what to run.
struct StudyRun {
  const lab::SweepSetup& setup;
  std::filesystem::path out;
  Json plan;                 // as the folder keeps it
  std::string who;           // as check_not_launched() has it
  std::string introduction;  // printed first
  std::function<std::string(const lab::SweepResult& result)> conclusion;
  std::string dry_run_end = {};  // printed after the commands of a dry run
};
int dry_run(const StudyRun& study);
// Returns the exit code: of an interrupt, or of a failure if a run has failed.
int run_study(const StudyRun& study);

}  // namespace trireme::cli
