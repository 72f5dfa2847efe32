// The plan of a study: which options are fixed, which vary over which values, which combinations make sense, how often
// each is measured. Read from a file or from the ready-made ones, checked as strictly as a command line, run by
// `trireme sweep`; the resolved form is kept in the study's folder. cells_of() gives the combinations.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/lab/configuration.hpp"
#include "trireme/lab/formula.hpp"
#include "trireme/report/record_set.hpp"

namespace trireme::lab {

using report::kPlanSchema;

// One value of an axis: of one option, or several options that are set together under a label.
struct Choice {
  Json value;              // what the cell shows: the option's value or the label
  Configuration settings;  // values that are texts beginning with '=' are formulas
  bool is_labelled = false;
};

struct Axis {
  std::string name;  // of the option; of labelled choices any
  std::vector<Choice> choices;
};

// What formulas count with beside options.
struct StudyMachine {
  int cores = 1, hardware_threads = 1;
};

struct StudyPlan {
  std::string file;  // where it was read from: messages begin with it
  std::string name, title, question, source;
  std::string figure;  // which figure answers the question; empty: no word on that
  Configuration fixed;
  std::vector<Axis> axes;  // the first varies slowest
  std::vector<Formula> constraints;
  std::int64_t repeats = 5;
  std::optional<double> budget_seconds;
  StudyMachine machine;
};

// Error(bad_input) names the place in the plan, what is wrong there and what is allowed. `source` is the plan's file,
// and the machine is this one; a plan that was resolved before has its own.
StudyPlan parse_plan(const Json& json, const std::string& source, const OptionCatalog& options,
                     const StudyMachine& machine);

// Ranges are lists here and every key is there, so that the same cells come from it again.
Json to_json(const StudyPlan& plan);

// "option=value": into `fixed`; of an option that varies, "option=a,b" leaves it these values. To be done before the
// plan is parsed. Error(bad_input) where this is not an option or the value not one of its kind.
void set_option(Json& plan, const std::string& assignment, const OptionCatalog& options);

// What a name that is no option is in formulas: cores, hardware-threads, hosts; nothing: none of them.
std::optional<double> fact(const std::string& name, const StudyMachine& machine, const Configuration& configuration);
// `hosts`: the number of hosts that the configuration names; 1 where it names none.
int number_of_hosts(const Configuration& configuration);
// A value as formulas have it, and back: a whole number stays one.
FormulaValue formula_value(const Json& value);
Json json_value(const FormulaValue& value);
// The text behind the '=' of a value that follows from others; nothing: a plain value.
std::optional<std::string> formula_text(const Json& value);

}  // namespace trireme::lab
