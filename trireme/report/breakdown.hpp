// Time breakdown of a step over the runs of a cell. Used by figures and findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/report/study.hpp"

namespace trireme::report {

// Seconds per step of one rank, medians over runs. Compute includes the optimizer if that is not known separately.
struct RankTime {
  double compute = 0, exposed_communication = 0, input_wait = 0, optimizer = 0, idle = 0;
  bool optimizer_known = false;

  double total() const { return compute + exposed_communication + input_wait + optimizer + idle; }
};

std::vector<RankTime> rank_times(const Cell& cell);   // empty if parts of a step overlapped
std::optional<RankTime> mean_time(const Cell& cell);  // mean over ranks

std::vector<double> io_overheads(const Cell& cell);      // percent, per run or, for a single run, per repeat
std::vector<double> run_io_overheads(const Cell& cell);  // one per run, for tests (Cell::run_speeds)

struct TimePart {
  std::string name;
  double RankTime::*seconds;
};
const std::vector<TimePart>& time_parts();

}  // namespace trireme::report
