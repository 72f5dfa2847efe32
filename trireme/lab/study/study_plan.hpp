// The plan of a study: fixed options, varied options and their values, allowed combinations, number of repeats. Read
// from a file or a ready-made plan, checked as strictly as a command line, run by `trireme sweep`; the study's folder
// keeps the resolved form. cells_of() gives the combinations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/lab/study/configuration.hpp"
#include "trireme/lab/study/formula.hpp"
#include "trireme/report/record_set.hpp"

namespace trireme::lab {

using report::kPlanSchema;

// One value of an axis: of one option, or of several options set together under a label.
struct Choice {
  Json value;              // shown for the cell: the option's value or the label
  Configuration settings;  // text values that begin with '=' are formulas
  bool is_labelled = false;
};

struct Axis {
  std::string name;  // the option; any name for labeled choices
  std::vector<Choice> choices;
};

// Values that formulas can use besides options.
struct StudyMachine {
  int cores = 1, hardware_threads = 1;
};

struct StudyPlan {
  std::string file;  // source file: messages begin with it
  std::string name, title, question, source;
  std::string figure;  // the figure that answers the question; empty: not specified
  Configuration fixed;
  std::vector<Axis> axes;  // the first varies slowest
  std::vector<Formula> constraints;
  std::int64_t repeats = 5;
  std::optional<double> budget_seconds;
  StudyMachine machine;
};

// Error(bad_input) names the place in the plan, the problem and what is allowed. `source` is the plan's file; `machine`
// is this one unless a resolved plan has its own.
StudyPlan parse_plan(const Json& json, const std::string& source, const OptionCatalog& options,
                     const StudyMachine& machine);

Json to_json(const StudyPlan& plan);  // ranges as lists and all keys, for the same cells again

// "option=value" sets `fixed`; for a varied option, "option=a,b" restricts it to these values. Call before parsing the
// plan. Error(bad_input) if the option is unknown or the value is of another kind.
void set_option(Json& plan, const std::string& assignment, const OptionCatalog& options);

// The value of a formula name that is not an option: cores, hardware-threads, hosts; nothing: none of them.
std::optional<double> fact(const std::string& name, const StudyMachine& machine, const Configuration& configuration);
// Converts a value for formulas, and back: integers stay integers.
FormulaValue formula_value(const Json& value);
Json json_value(const FormulaValue& value);
std::optional<std::string> formula_text(const Json& value);  // after the '='; nothing: a plain value

}  // namespace trireme::lab
