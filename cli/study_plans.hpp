// What the commands that make studies share: plans by file or by name, and the machine that plans count with. Used by
// `sweep` and `compare`.
#pragma once

#include <string>

#include "trireme/lab/study_plan.hpp"

namespace trireme::cli {

// The JSON of a file, or of a ready-made plan. Error(bad_input) where it is neither.
report::Json find_plan(const std::string& plan);

// What this process may use of it.
lab::StudyMachine this_machine();

// How to go on with a study that has ended early.
std::string go_on_text();

}  // namespace trireme::cli
