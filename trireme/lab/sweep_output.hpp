// What a sweep looks like to people: what is going to be run, a line for each run, a bar with the time left on a
// terminal, and the table at the end. Views of what Sweep reports.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trireme/lab/sweep.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::lab {

class SweepText : public SweepObserver {
 public:
  // Lines go to `stream`; to `terminal` the bar, where there is one.
  SweepText(const std::vector<StudyCell>& cells, std::FILE* stream, std::FILE* terminal)
      : cells_(cells), stream_(stream), line_(terminal) {}
  void on_start(const ScheduledRun& run, const SweepProgress& progress) override;
  void on_wait(double seconds) override;
  void on_end(const ScheduledRun& run, const Json& record, const SweepProgress& progress) override;
  void erase_bar() { line_.erase(); }

 private:
  const std::vector<StudyCell>& cells_;
  std::FILE* stream_;
  report::TerminalLine line_;
  ScheduledRun run_;
  SweepProgress progress_;
};

// "[=====>      ] 12 of 40 runs, about 3m20s left; batch-size=16, 4s"
std::string bar_text(const SweepProgress& progress, const std::string& cell, double run_seconds);
// Title, question, what the documents found, number of cells and runs.
std::string introduction(const StudyPlan& plan, std::size_t cells);
// The cells with their commands, and how long all of it will take as far as that is known.
std::string dry_run_text(const SweepSetup& setup, const std::vector<CellState>& known);
// Images per second of each cell, with spread, runs and failures.
std::string result_table(const std::vector<StudyCell>& cells, const SweepResult& result);
// What did not happen: failures with their errors, and what there was no time for.
std::string shortfall_text(const std::vector<StudyCell>& cells, const SweepResult& result);

}  // namespace trireme::lab
