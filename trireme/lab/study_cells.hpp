// The cells of a study: every combination of a plan's axes that its constraints allow, with all options resolved. Made
// from a StudyPlan by whoever runs it or shows it.
#pragma once

#include <string>
#include <vector>

#include "trireme/lab/study_plan.hpp"

namespace trireme::lab {

struct StudyCell {
  Json varied;                  // the axes' names with the values, or labels, of this cell
  Configuration configuration;  // all options, with the values of formulas
  std::string slug;             // names the cell's files; no two cells have the same
  // Of a comparison: who runs it, and the program and arguments of one that is not Trireme.
  std::string framework = {};
  std::vector<std::string> peer_command = {};
};

std::string cell_text(const StudyCell& cell);  // "batch-size=16 workers=2"
std::string slug_of(const Json& varied);       // "batch-size-16_workers-2"
// What runs the cell, where `program` is trireme, and prints its record.
std::vector<std::string> run_command(const StudyCell& cell, const OptionCatalog& options, const std::string& program);
// The shell line that repeats the run by hand.
std::string repeat_line(const StudyCell& cell, const OptionCatalog& options);

// In the order of the plan; what formulas make the same is there once. Error(bad_input) where a constraint or a formula
// asks for something that the plan does not set, gives what the option cannot be, or where no cell is left.
std::vector<StudyCell> cells_of(const StudyPlan& plan, const OptionCatalog& options);

}  // namespace trireme::lab
