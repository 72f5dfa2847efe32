#include "cli/study_plans.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "cli/interrupt.hpp"
#include "cli/sweep_output.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/lab/study/ready_plans.hpp"
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
    bad_input("missing plan; give a file or a ready-made plan: {}; see trireme sweep --list",
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
    bad_input("this process is one of several started by {}; {} starts its own processes", launcher, who);
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
  std::vector<std::string> words = record::command_line();
  words.front() = "trireme";
  return fmt::format("results so far are kept; to continue: {}\n", shell_line(words));
}

int dry_run(const StudyRun& study) {
  check_plan(study.out, study.plan);
  const auto known = lab::read_states(study.out, study.setup);
  fmt::print("{}{}{}", study.introduction, dry_run_text(study.setup, known), study.dry_run_end);
  return 0;
}

int run_study(const StudyRun& study) {
  check_not_launched(study.who);
  Interrupt interrupt("interrupted: stopping this run (interrupt again to stop at once)");
  const lab::StudyFolder folder(study.out);
  take_plan(folder, study.plan);
  fmt::print("{}", study.introduction);
  std::fflush(stdout);
  SweepText text(study.setup.cells, stdout, cluster::shows_progress() ? stderr : nullptr);
  const lab::SweepResult result = lab::Sweep(study.setup, folder, text).run(interrupt.listen());
  text.erase_bar();
  const bool has_failures =
      std::ranges::any_of(result.cells, [](const lab::CellState& cell) { return cell.failures > 0; });
  fmt::print("{}", study.conclusion(result));
  if (has_failures)
    fmt::print("logs of failed runs: {}; to repeat them: --retry-failed\n", (study.out / "logs").string());
  if (result.interrupted || !result.left_out.empty()) std::fputs(go_on_text().c_str(), stdout);
  fmt::print("records: {}\n", (study.out / "runs").string());
  if (result.interrupted) return kInterruptedExitCode;
  return has_failures ? exit_code(ErrorKind::failed) : 0;
}

}  // namespace trireme::cli
