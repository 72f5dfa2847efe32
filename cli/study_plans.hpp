// What the commands that make studies share: plans by file or by name, the machine that plans count with, and how a
// study begins and goes on. Used by `sweep`, `tune` and `compare`.
#pragma once

#include <filesystem>
#include <string>

#include "trireme/lab/study_folder.hpp"
#include "trireme/lab/study_plan.hpp"

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

}  // namespace trireme::cli
