#include "cli/study_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "cli/interrupt.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/lab/study/ready_plans.hpp"
#include "trireme/lab/study/trial.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {
namespace {

std::vector<std::string> ready_names() {
  std::vector<std::string> names;
  for (const lab::ReadyPlan& ready : lab::ready_plans()) names.emplace_back(ready.name);
  return names;
}

constexpr std::size_t kSweepBarWidth = 30;
constexpr std::size_t kLongestError = 200;

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string left_text(const lab::SweepProgress& progress) {
  if (progress.runs_done >= progress.runs_planned || !progress.knows_seconds) return "";
  return fmt::format(", about {}", lab::time_left_text(progress.seconds_left));
}

std::string outcome_text(const record::RunRecord& record) {
  if (record.error) return "failed: " + record.error->substr(0, kLongestError);
  return fmt::format("{:.2f} images/sec", record.images_per_second());
}

// The plan's own values, a column per axis.
std::vector<Column> axis_columns(const std::vector<lab::StudyCell>& cells) {
  std::vector<Column> columns;
  for (const auto& [name, value] : cells.front().varied.items()) columns.push_back({name});
  return columns;
}

std::vector<std::string> values_of(const lab::StudyCell& cell) {
  std::vector<std::string> values;
  for (const auto& [name, value] : cell.varied.items()) values.push_back(lab::value_text(value));
  return values;
}

// Runs of this cell still to do.
std::size_t runs_missing(const lab::StudyPlan& plan, const lab::CellState& cell) {
  const auto planned = static_cast<std::size_t>(plan.repeats);
  return cell.failures > 0 ? 0 : planned - std::min(planned, cell.seconds.size());
}

// From the times of earlier runs, or else from the plan's limits.
std::string estimate_text(const lab::SweepSetup& setup, const std::vector<lab::CellState>& known) {
  std::size_t runs = 0;
  std::optional<double> expected = 0.0, most = 0.0;
  for (std::size_t i = 0; i < setup.cells.size(); ++i) {
    const std::size_t missing = runs_missing(setup.plan, known[i]);
    const auto seconds = lab::expected_seconds(known, i);
    const Json* limit = lab::find(setup.cells[i].configuration, "max-seconds");
    runs += missing;
    expected = expected && seconds ? std::optional(*expected + static_cast<double>(missing) * *seconds) : std::nullopt;
    most = most && limit != nullptr ? std::optional(*most + static_cast<double>(missing) * limit->get<double>())
                                    : std::nullopt;
  }
  if (runs == 0) return "nothing left to run\n";
  const std::string count = plural(runs, "run") + " left to do";
  if (expected) return fmt::format("{}: about {}, judging by earlier runs\n", count, lab::duration_text(*expected));
  if (most) {
    return fmt::format("{}: at most {} of steps (max-seconds), plus a few seconds to start each\n", count,
                       lab::duration_text(*most));
  }
  return fmt::format("{}; the first will show how long they take\n", count);
}

// A line per run and, on a terminal, a bar with the time left.
class SweepText : public lab::SweepObserver {
 public:
  // Lines go to `stream`, the bar to `terminal`, if any.
  SweepText(const std::vector<lab::StudyCell>& cells, std::FILE* stream, std::FILE* terminal)
      : cells_(cells), stream_(stream), line_(terminal) {}

  void on_start(const lab::ScheduledRun& run, const lab::SweepProgress& progress) override {
    run_ = run;
    progress_ = progress;
    on_wait(0);
  }
  void on_wait(double seconds) override {
    if (!line_.has_terminal()) return;
    lab::SweepProgress now = progress_;
    now.seconds_left -= seconds;
    const std::string bar = bar_text(now, lab::cell_text(cells_[run_.cell]), seconds);
    line_.draw(bar);
  }
  void on_end(const lab::ScheduledRun& run, const record::RunRecord& record,
              const lab::SweepProgress& progress) override {
    line_.erase();
    fmt::print(stream_, "{}/{}  {}  repeat {}: {}, took {}{}\n", progress.runs_done, progress.runs_planned,
               lab::cell_text(cells_[run.cell]), run.repeat, outcome_text(record),
               lab::duration_text(record.study->seconds.value_or(0)), left_text(progress));
    std::fflush(stream_);
  }
  void erase_bar() { line_.erase(); }

 private:
  const std::vector<lab::StudyCell>& cells_;
  std::FILE* stream_;
  report::TerminalLine line_;
  lab::ScheduledRun run_;
  lab::SweepProgress progress_;
};

// Title, question, source, numbers.
std::string study_introduction(const lab::SweepSetup& setup) {
  const lab::StudyPlan& plan = setup.plan;
  std::string text = plan.title.empty() ? plan.name + "\n" : fmt::format("{}: {}\n", plan.name, plan.title);
  if (!plan.question.empty()) text += fmt::format("question: {}\n", plan.question);
  if (!plan.source.empty()) text += fmt::format("known:    {}\n", plan.source);
  text += fmt::format("{} x {}, one after the other, in rounds", plural(setup.cells.size(), "cell"),
                      plural(plan.repeats, "repeat"));
  if (plan.budget_seconds) text += fmt::format(", within {}", lab::duration_text(*plan.budget_seconds));
  return text + "\n";
}

std::string dry_run_text(const lab::SweepSetup& setup, const std::vector<lab::CellState>& known) {
  std::string text;
  for (const lab::StudyCell& cell : setup.cells) {
    text += fmt::format("{}\n  {}\n", lab::cell_text(cell), lab::repeat_line(cell));
  }
  return text + estimate_text(setup, known);
}

}  // namespace

std::string bar_text(const lab::SweepProgress& progress, const std::string& cell, double run_seconds) {
  const double share = progress.runs_planned == 0
                           ? 1
                           : static_cast<double>(progress.runs_done) / static_cast<double>(progress.runs_planned);
  const auto filled = static_cast<std::size_t>(share * kSweepBarWidth);
  return fmt::format("[{}{}] {} of {}{}; {}, {:.0f}s", std::string(filled, '#'),
                     std::string(kSweepBarWidth - filled, '.'), progress.runs_done,
                     plural(progress.runs_planned, "run"), left_text(progress), cell, run_seconds);
}

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
  const perf::Machine machine = perf::read_machine(0);
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
  fmt::print("{}{}{}{}", study_introduction(study.setup), study.participants, dry_run_text(study.setup, known),
             study.dry_run_end);
  return 0;
}

int run_study(const StudyRun& study) {
  check_not_launched(study.who);
  Interrupt interrupt("interrupted: stopping this run (interrupt again to stop at once)");
  const lab::StudyFolder folder(study.out);
  take_plan(folder, study.plan);
  fmt::print("{}{}", study_introduction(study.setup), study.participants);
  std::fflush(stdout);
  SweepText text(study.setup.cells, stdout, cluster::shows_progress() ? stderr : nullptr);
  const lab::SweepResult result = lab::run_sweep(study.setup, folder, text, interrupt.listen());
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

std::string result_table(const std::vector<lab::StudyCell>& cells, const lab::SweepResult& result) {
  std::vector<Column> columns = axis_columns(cells);
  for (const char* title : {"images/sec", "spread", "runs", "failures"}) {
    columns.push_back({title, Align::right});
  }
  TextTable table(columns);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const lab::CellState& state = result.cells[i];
    const perf::Summary speed = perf::summarize(state.images_per_second);
    const std::size_t runs = state.images_per_second.size();
    std::vector<std::string> row = values_of(cells[i]);
    row.push_back(runs == 0 ? "-" : fmt::format("{:.2f}", speed.median));
    row.push_back(runs < 2 ? "-" : fmt::format("{:.1f} %", 100 * (speed.maximum - speed.minimum) / speed.median));
    row.push_back(std::to_string(runs));
    row.push_back(std::to_string(state.failures));
    table.add_row(std::move(row));
  }
  std::string text = table.text();
  text += "images/sec: of all workers together, the median of the runs; spread: from the slowest run to the fastest\n";
  return text;
}

std::string shortfall_text(const std::vector<lab::StudyCell>& cells, const lab::SweepResult& result) {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (result.cells[i].failures == 0) continue;
    text += fmt::format("failed: {}: {}\n", lab::cell_text(cells[i]), result.cells[i].error.substr(0, kLongestError));
  }
  if (result.left_out.empty()) return text;
  std::set<std::size_t> unmeasured;
  for (const lab::ScheduledRun& run : result.left_out) {
    if (result.cells[run.cell].images_per_second.empty()) unmeasured.insert(run.cell);
  }
  text += fmt::format("left out for lack of time (--budget): {}\n", plural(result.left_out.size(), "run"));
  for (const std::size_t cell : unmeasured) text += fmt::format("  never measured: {}\n", lab::cell_text(cells[cell]));
  return text;
}

}  // namespace trireme::cli
