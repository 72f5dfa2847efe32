#include "trireme/lab/study/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/clock.hpp"
#include "trireme/lab/study/trial.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

void add_record(CellState& cell, const record::RunRecord& record) {
  if (record.error) {
    if (++cell.failures == 1) cell.error = *record.error;
    return;
  }
  cell.images_per_second.push_back(record.images_per_second());
  cell.seconds.push_back(record.study ? record.study->seconds.value_or(0) : 0);
}

RunName name_of(const SweepSetup& setup, const ScheduledRun& run) { return {setup.cells[run.cell].slug, run.repeat}; }

// Includes the command: another framework's has interpreter and environment, which a plan lacks.
record::StudyRun study_of(const SweepSetup& setup, const ScheduledRun& run) {
  const StudyCell& cell = setup.cells[run.cell];
  record::StudyRun study = identity_of(setup.plan, cell, run.repeat);
  study.command = repeat_line(cell);
  return study;
}

// See run_sweep().
class Sweep {
 public:
  Sweep(const SweepSetup& setup, const StudyFolder& folder, SweepObserver& observer)
      : setup_(setup),
        folder_(folder),
        observer_(observer),
        is_there_(setup.cells.size(), std::vector<bool>(static_cast<std::size_t>(setup.plan.repeats))) {
    result_.cells.resize(setup.cells.size());
  }
  SweepResult run(std::stop_token stop) {
    find_earlier_runs();
    const SteadyClock::time_point start = SteadyClock::now();
    for (std::size_t i = 0; i < setup_.schedule.size() && !result_.interrupted; ++i) {
      const ScheduledRun& next = setup_.schedule[i];
      if (!is_needed(next)) continue;
      const double elapsed = seconds_since(start);
      if (!result_.left_out.empty() || !fits_budget(next, elapsed)) {
        result_.left_out.push_back(next);
        continue;
      }
      observer_.on_start(next, progress(i));
      const auto record = run_one(next, stop);
      result_.interrupted = !record;
      if (record) observer_.on_end(next, *record, progress(i + 1));
    }
    return std::move(result_);
  }

 private:
  void find_earlier_runs() {
    for (const ScheduledRun& run : setup_.schedule) {
      const auto record = find_record(folder_.path(), name_of(setup_, run), study_of(setup_, run));
      if (!record) continue;
      if (record->error && setup_.retry_failed) {
        folder_.remove_run(name_of(setup_, run));
        continue;
      }
      add_record(result_.cells[run.cell], *record);
      is_there_[run.cell][run.repeat - 1] = true;
      ++runs_done_;
    }
  }
  bool is_needed(const ScheduledRun& run) const {
    return !is_there_[run.cell][run.repeat - 1] && result_.cells[run.cell].failures == 0;
  }
  bool fits_budget(const ScheduledRun& run, double elapsed) const {
    if (!setup_.plan.budget_seconds) return true;
    return elapsed + expected_seconds(result_.cells, run.cell).value_or(0) <= *setup_.plan.budget_seconds;
  }
  // Nothing: interrupted.
  std::optional<record::RunRecord> run_one(const ScheduledRun& run, std::stop_token stop) {
    record::StudyRun study = study_of(setup_, run);
    study.kind = setup_.plan.figure;
    const TrialResult trial = run_into(folder_, name_of(setup_, run),
                                       {.command = run_command(setup_.cells[run.cell], setup_.program),
                                        .limit_seconds = setup_.run_limit_seconds,
                                        .while_running = [this](double seconds) { observer_.on_wait(seconds); }},
                                       std::move(study), stop);
    if (trial.ending == TrialResult::Ending::interrupted) return std::nullopt;
    add_record(result_.cells[run.cell], trial.record);
    is_there_[run.cell][run.repeat - 1] = true;
    ++runs_done_;
    return trial.record;
  }
  SweepProgress progress(std::size_t next) const {
    SweepProgress progress{.runs_done = runs_done_, .runs_planned = runs_done_};
    for (std::size_t i = next; i < setup_.schedule.size(); ++i) {
      if (!is_needed(setup_.schedule[i])) continue;
      ++progress.runs_planned;
      const auto seconds = expected_seconds(result_.cells, setup_.schedule[i].cell);
      progress.knows_seconds = seconds.has_value();
      progress.seconds_left += seconds.value_or(0);
    }
    return progress;
  }

  SweepSetup setup_;
  const StudyFolder& folder_;
  SweepObserver& observer_;
  std::vector<std::vector<bool>> is_there_;  // [cell][repeat - 1]
  std::size_t runs_done_ = 0;                // also before
  SweepResult result_;
};

}  // namespace

std::optional<double> expected_seconds(const std::vector<CellState>& cells, std::size_t cell) {
  if (!cells[cell].seconds.empty()) return perf::median(cells[cell].seconds);
  std::vector<double> all;
  for (const CellState& state : cells) all.insert(all.end(), state.seconds.begin(), state.seconds.end());
  if (all.empty()) return std::nullopt;
  return perf::median(all);
}

std::vector<CellState> read_states(const std::filesystem::path& folder, const SweepSetup& setup) {
  std::vector<CellState> states(setup.cells.size());
  for (const ScheduledRun& run : setup.schedule) {
    const auto record = find_record(folder, name_of(setup, run), study_of(setup, run));
    if (record) add_record(states[run.cell], *record);
  }
  return states;
}

SweepResult run_sweep(const SweepSetup& setup, const StudyFolder& folder, SweepObserver& observer,
                      const std::stop_token& stop) {
  return Sweep(setup, folder, observer).run(stop);
}

}  // namespace trireme::lab
