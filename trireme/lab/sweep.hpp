// Runs the cells of a study, each as often as its plan says, into the study's folder. What has a record is not run
// again, so a sweep that was ended goes on by being started again. A cell that fails is recorded with its error and
// left out from then on; the others go on. Made by `trireme sweep` and `trireme compare`; what people see of it is made
// by an observer.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/lab/schedule.hpp"
#include "trireme/lab/study_cells.hpp"
#include "trireme/lab/study_folder.hpp"

namespace trireme::lab {

// What is known of one cell so far.
struct CellState {
  std::vector<double> images_per_second, seconds;  // of the runs that were measured
  int failures = 0;
  std::string error;  // of the first that failed
};

struct SweepProgress {
  std::size_t runs_done = 0, runs_planned = 0;
  double seconds_left = 0;     // by the times of earlier runs
  bool knows_seconds = false;  // there are some
};

class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  virtual void on_start(const ScheduledRun& /*run*/, const SweepProgress& /*progress*/) {}
  virtual void on_wait(double /*seconds*/) {}  // about twice a second while a run goes on
  virtual void on_end(const ScheduledRun& /*run*/, const Json& /*record*/, const SweepProgress& /*progress*/) {}
};

struct SweepSetup {
  const StudyPlan& plan;
  const std::vector<StudyCell>& cells;
  const OptionCatalog& options;
  std::vector<ScheduledRun> schedule;  // all runs of all cells
  std::string program;                 // the `trireme` binary
  double run_limit_seconds = 0;        // of one run
  bool retry_failed = false;           // forgets the failures of earlier sweeps
};

struct SweepResult {
  std::vector<CellState> cells;
  std::size_t runs_made = 0, runs_found = 0;  // by this sweep; there before
  std::vector<ScheduledRun> left_out;         // for lack of time
  bool interrupted = false;
};

// How long a run of this cell takes: the median of its earlier ones, or else of all; nothing: there are none.
std::optional<double> expected_seconds(const std::vector<CellState>& cells, std::size_t cell);

// The cells as the records of a folder, which need not exist, have them. Error(bad_input) where these are of others.
std::vector<CellState> read_states(const std::filesystem::path& folder, const SweepSetup& setup);

class Sweep {
 public:
  Sweep(const SweepSetup& setup, const StudyFolder& folder, SweepObserver& observer);
  SweepResult run(std::stop_token stop);

 private:
  void find_earlier_runs();
  bool is_needed(const ScheduledRun& run) const;
  bool fits_budget(const ScheduledRun& run, double elapsed) const;
  // The record; nothing: it was interrupted.
  std::optional<Json> run_one(const ScheduledRun& run, std::stop_token stop);
  SweepProgress progress(std::size_t next) const;

  SweepSetup setup_;
  const StudyFolder& folder_;
  SweepObserver& observer_;
  std::vector<std::vector<bool>> is_there_;  // [cell][repeat - 1]
  SweepResult result_;
};

}  // namespace trireme::lab
