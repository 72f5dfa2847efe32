#include "trireme/report/breakdown.hpp"

#include <algorithm>

#include "trireme/perf/statistics.hpp"

namespace trireme::report {
namespace {

using Part = std::optional<double> record::Breakdown::*;

std::vector<double> samples_of(const Cell& cell, std::size_t rank, Part part) {
  std::vector<double> samples;
  for (const Run& run : cell.runs) {
    if (rank < run.results.breakdown.size() && (run.results.breakdown[rank].*part).has_value())
      samples.push_back(*(run.results.breakdown[rank].*part));
  }
  return samples;
}

}  // namespace

std::vector<RankTime> rank_times(const Cell& cell) {
  std::size_t ranks = 0;
  for (const Run& run : cell.runs) ranks = std::max(ranks, run.results.breakdown.size());
  std::vector<RankTime> times;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::vector<double> compute = samples_of(cell, rank, &record::Breakdown::compute);
    if (compute.empty()) return {};
    const std::vector<double> optimizer = samples_of(cell, rank, &record::Breakdown::optimizer);
    times.push_back(
        {.compute = perf::median(compute),
         .exposed_communication = perf::median(samples_of(cell, rank, &record::Breakdown::exposed_communication)),
         .input_wait = perf::median(samples_of(cell, rank, &record::Breakdown::input_wait)),
         .optimizer = perf::median(optimizer),
         .idle = perf::median(samples_of(cell, rank, &record::Breakdown::idle)),
         .optimizer_known = !optimizer.empty()});
  }
  return times;
}

std::optional<RankTime> mean_time(const Cell& cell) {
  const std::vector<RankTime> ranks = rank_times(cell);
  if (ranks.empty()) return std::nullopt;
  RankTime mean{.optimizer_known = ranks.front().optimizer_known};
  for (const TimePart& part : time_parts()) {
    for (const RankTime& rank : ranks) mean.*part.seconds += rank.*part.seconds / static_cast<double>(ranks.size());
  }
  return mean;
}

std::vector<double> io_overheads(const Cell& cell) {
  return cell.runs.size() == 1 ? cell.example().results.io_overhead_percent_per_repeat : run_io_overheads(cell);
}

std::vector<double> run_io_overheads(const Cell& cell) {
  std::vector<double> samples;
  for (const Run& run : cell.runs) {
    if (!run.results.io_overhead_percent_per_repeat.empty())
      samples.push_back(perf::median(run.results.io_overhead_percent_per_repeat));
  }
  return samples;
}

const std::vector<TimePart>& time_parts() {
  static const std::vector<TimePart> parts{{"compute", &RankTime::compute},
                                           {"exposed communication", &RankTime::exposed_communication},
                                           {"input wait", &RankTime::input_wait},
                                           {"optimizer", &RankTime::optimizer},
                                           {"idle", &RankTime::idle}};
  return parts;
}

}  // namespace trireme::report
