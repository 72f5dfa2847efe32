// Runs the cells of a study as often as its plan says, into the study's folder. Runs that have a record are skipped, so
// starting an ended sweep again resumes it. A cell that fails is recorded with its error and dropped; the others
// continue. Made by `trireme sweep` and `trireme compare`; an observer shows progress.
#pragma once

#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "trireme/lab/study/schedule.hpp"
#include "trireme/lab/study/study_cells.hpp"
#include "trireme/lab/study/study_folder.hpp"

namespace trireme::lab {

// One cell so far.
struct CellState {
  std::vector<double> images_per_second, seconds;  // of successful runs
  int failures = 0;
  std::string error;  // of the first failure
};

struct SweepProgress {
  std::size_t runs_done = 0, runs_planned = 0;
  double seconds_left = 0;     // estimated from earlier runs
  bool knows_seconds = false;  // there are earlier runs
};

class SweepObserver {
 public:
  virtual ~SweepObserver() = default;
  virtual void on_start(const ScheduledRun& /*run*/, const SweepProgress& /*progress*/) {}
  virtual void on_wait(double /*seconds*/) {}  // about twice a second during a run
  virtual void on_end(const ScheduledRun& /*run*/, const record::RunRecord& /*record*/,
                      const SweepProgress& /*progress*/) {}
};

struct SweepSetup {
  const StudyPlan& plan;
  const std::vector<StudyCell>& cells;
  std::vector<ScheduledRun> schedule;  // all runs of all cells
  std::string program;                 // the `trireme` binary
  double run_limit_seconds = 0;        // of one run
  bool retry_failed = false;           // ignores failures of earlier sweeps
};

struct SweepResult {
  std::vector<CellState> cells;
  std::vector<ScheduledRun> left_out;  // for lack of time
  bool interrupted = false;
};

// Expected duration of a run: the median of the cell's earlier runs, or else of all; nothing: there are none.
std::optional<double> expected_seconds(const std::vector<CellState>& cells, std::size_t cell);

// States from the records of a folder, which need not exist. Error(bad_input) if these belong to other cells.
std::vector<CellState> read_states(const std::filesystem::path& folder, const SweepSetup& setup);

SweepResult run_sweep(const SweepSetup& setup, const StudyFolder& folder, SweepObserver& observer,
                      const std::stop_token& stop);

}  // namespace trireme::lab
