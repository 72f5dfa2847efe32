#include "cli/study_plans.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/shell_text.hpp"
#include "trireme/lab/ready_plans.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::cli {
namespace {

std::vector<std::string> ready_names() {
  std::vector<std::string> names;
  for (const lab::ReadyPlan& ready : lab::ready_plans()) names.emplace_back(ready.name);
  return names;
}

}  // namespace

Json find_plan(const std::string& plan) {
  if (plan.empty()) {
    bad_input("which plan? A file, or one of the ready-made ones: {}; see trireme sweep --list",
              fmt::join(ready_names(), ", "));
  }
  std::error_code ignored;
  if (std::filesystem::is_regular_file(plan, ignored)) return read_json(plan);
  for (const lab::ReadyPlan& ready : lab::ready_plans()) {
    if (ready.name == plan) return parse_json(ready.text, plan);
  }
  const auto names = ready_names();
  bad_input("{}: there is no such file or ready-made plan{} The plans are {}", plan, suggestion(plan, names),
            fmt::join(names, ", "));
}

lab::StudyMachine this_machine() {
  const perf::Machine machine = perf::read_machine();
  const int threads_per_core = std::max(1, machine.hardware_threads / std::max(1, machine.cores));
  return {.cores = machine.usable_cores, .hardware_threads = machine.usable_cores * threads_per_core};
}

void check_not_launched(const std::string& who) {
  if (const std::string launcher = cluster::surrounding_launcher(); !launcher.empty()) {
    bad_input("this process was started by {} as one of several; {} starts its own", launcher, who);
  }
}

void check_plan(const std::filesystem::path& folder, const Json& plan) {
  if (const auto kept = lab::read_plan(folder)) lab::check_same_study(*kept, plan, folder.string());
}

void take_plan(const lab::StudyFolder& folder, const Json& plan) {
  check_plan(folder.path(), plan);
  folder.write_plan(plan);
}

std::string go_on_text() {
  std::vector<std::string> words = report::command_line();
  words.front() = "trireme";
  return fmt::format("what was measured is kept; to go on: {}\n", cluster::shell_line(words));
}

}  // namespace trireme::cli
