// The cells of a study: every combination of a StudyPlan's axes that its constraints allow, with all options resolved.
#pragma once

#include <string>
#include <vector>

#include "trireme/lab/study/study_plan.hpp"

namespace trireme::lab {

struct StudyCell {
  Json varied;                  // axis names with this cell's values or labels
  Configuration configuration;  // all options, formulas evaluated
  std::string slug;             // names the cell's files; unique
  // In a comparison: who runs it, and another framework's program and arguments.
  std::string framework = {};
  std::vector<std::string> peer_command = {};
};

std::string cell_text(const StudyCell& cell);  // "batch-size=16 workers=2"
std::string slug_of(const Json& varied);       // "batch-size-16_workers-2"
// The command that runs the cell and prints its record; `program` is trireme.
std::vector<std::string> run_command(const StudyCell& cell, const std::string& program);
std::string repeat_line(const StudyCell& cell);  // for a shell, by hand

// In plan order; cells that formulas make equal appear once. Error(bad_input) if a constraint or formula uses something
// the plan does not set or yields an illegal value, or if no cell is left.
std::vector<StudyCell> cells_of(const StudyPlan& plan, const OptionCatalog& options);

}  // namespace trireme::lab
