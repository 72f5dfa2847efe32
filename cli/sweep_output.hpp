// The text output of a sweep: what will run, a line per run, a bar with the time left, and the final table.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "trireme/lab/study/sweep.hpp"
#include "trireme/report/terminal.hpp"

namespace trireme::cli {

class SweepText : public lab::SweepObserver {
 public:
  // Lines go to `stream`, the bar to `terminal`, if any.
  SweepText(const std::vector<lab::StudyCell>& cells, std::FILE* stream, std::FILE* terminal)
      : cells_(cells), stream_(stream), line_(terminal) {}
  void on_start(const lab::ScheduledRun& run, const lab::SweepProgress& progress) override;
  void on_wait(double seconds) override;
  void on_end(const lab::ScheduledRun& run, const record::RunRecord& record,
              const lab::SweepProgress& progress) override;
  void erase_bar() { line_.erase(); }

 private:
  const std::vector<lab::StudyCell>& cells_;
  std::FILE* stream_;
  report::TerminalLine line_;
  lab::ScheduledRun run_;
  lab::SweepProgress progress_;
};

// "[=====>      ] 12 of 40 runs, about 3m20s left; batch-size=16, 4s"
std::string bar_text(const lab::SweepProgress& progress, const std::string& cell, double run_seconds);
std::string introduction(const lab::StudyPlan& plan, std::size_t cells);  // title, question, source, numbers
std::string dry_run_text(const lab::SweepSetup& setup, const std::vector<lab::CellState>& known);
std::string result_table(const std::vector<lab::StudyCell>& cells, const lab::SweepResult& result);
std::string shortfall_text(const std::vector<lab::StudyCell>& cells,
                           const lab::SweepResult& result);  // failures, no time

}  // namespace trireme::cli
