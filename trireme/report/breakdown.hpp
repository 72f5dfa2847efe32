// Where the time of a step goes, over the runs of a cell. Used by figures and findings.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/report/study.hpp"

namespace trireme::report {

// Seconds per step of one rank, medians over runs. Compute includes the optimizer where that is not known apart.
struct RankTime {
  double compute = 0, exposed_communication = 0, input_wait = 0, optimizer = 0, idle = 0;
  bool optimizer_known = false;

  double total() const { return compute + exposed_communication + input_wait + optimizer + idle; }
};

// By rank; empty where compute is not known, because parts of a step ran at the same time.
std::vector<RankTime> rank_times(const Cell& cell);
// The mean over ranks.
std::optional<RankTime> mean_time(const Cell& cell);

// Percent of the speed that input costs: of each run or, where there is one run alone, of each of its repeats.
std::vector<double> io_overheads(const Cell& cell);
// Of each run alone, as tests count them (Cell::run_speeds).
std::vector<double> run_io_overheads(const Cell& cell);

struct TimePart {
  std::string name;
  double RankTime::*seconds;
};
const std::vector<TimePart>& time_parts();

}  // namespace trireme::report
