// The text output of a sweep: what will run, a line per run, a bar with the time left, and the final table.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trireme/lab/sweep.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::lab {

class SweepText : public SweepObserver {
 public:
  // Lines go to `stream`, the bar to `terminal`, if any.
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
std::string introduction(const StudyPlan& plan, std::size_t cells);  // title, question, source, numbers
std::string dry_run_text(const SweepSetup& setup, const std::vector<CellState>& known);
std::string result_table(const std::vector<StudyCell>& cells, const SweepResult& result);
std::string shortfall_text(const std::vector<StudyCell>& cells, const SweepResult& result);  // failures, no time

}  // namespace trireme::lab
