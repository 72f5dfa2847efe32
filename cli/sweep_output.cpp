#include "cli/sweep_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trireme/base/text_table.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/lab/study/trial.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::cli {
namespace {

constexpr std::size_t kSweepBarWidth = 30;
constexpr std::size_t kLongestError = 200;

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string left_text(const lab::SweepProgress& progress) {
  if (progress.runs_done >= progress.runs_planned || !progress.knows_seconds) return "";
  return fmt::format(", about {} left", lab::duration_text(std::max(std::round(progress.seconds_left), 1.0)));
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

void SweepText::on_start(const lab::ScheduledRun& run, const lab::SweepProgress& progress) {
  run_ = run;
  progress_ = progress;
  on_wait(0);
}

void SweepText::on_wait(double seconds) {
  if (!line_.has_terminal()) return;
  lab::SweepProgress now = progress_;
  now.seconds_left -= seconds;
  const std::string bar = bar_text(now, lab::cell_text(cells_[run_.cell]), seconds);
  line_.draw(bar.substr(0, line_.columns()));
}

void SweepText::on_end(const lab::ScheduledRun& run, const record::RunRecord& record,
                       const lab::SweepProgress& progress) {
  line_.erase();
  fmt::print(stream_, "{}/{}  {}  repeat {}: {}, took {}{}\n", progress.runs_done, progress.runs_planned,
             lab::cell_text(cells_[run.cell]), run.repeat, outcome_text(record),
             lab::duration_text(record.study->seconds.value_or(0)), left_text(progress));
  std::fflush(stream_);
}

std::string introduction(const lab::StudyPlan& plan, std::size_t cells) {
  std::string text = plan.title.empty() ? plan.name + "\n" : fmt::format("{}: {}\n", plan.name, plan.title);
  if (!plan.question.empty()) text += fmt::format("question: {}\n", plan.question);
  if (!plan.source.empty()) text += fmt::format("known:    {}\n", plan.source);
  text += fmt::format("{} x {}, one after the other, in rounds", plural(cells, "cell"), plural(plan.repeats, "repeat"));
  if (plan.budget_seconds) text += fmt::format(", within {}", lab::duration_text(*plan.budget_seconds));
  return text + "\n";
}

std::string dry_run_text(const lab::SweepSetup& setup, const std::vector<lab::CellState>& known) {
  std::string text;
  for (const lab::StudyCell& cell : setup.cells) {
    text += fmt::format("{}\n  {}\n", lab::cell_text(cell), lab::repeat_line(cell, setup.options));
  }
  return text + estimate_text(setup, known);
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
