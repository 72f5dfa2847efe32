// The figures of a whole job, from what its workers have measured: what is printed at the end and goes into the record.
#pragma once

#include <optional>
#include <vector>

#include "trireme/lab/benchmark.hpp"

namespace trireme::lab {

// What all-reduce moves, to be compared with what `trireme net` says of the network.
struct GradientTraffic {
  double bytes = 0;                             // gradients of a step in the form in which they travel
  double bus_bytes_per_second = 0;              // 2 (n - 1) / n x bytes by the time of communication, hidden or not
  std::optional<double> link_bytes_per_second;  // between hosts, as it was measured; none: it was not, or is not used
};

struct JobFigures {
  std::vector<std::vector<double>> step_seconds;  // [repeat][step], the slowest worker's
  // Global. Workers that exchange nothing do not wait for each other: theirs is the sum of what each one reached.
  double images_per_second = 0;
  std::vector<double> per_repeat;
  double jitter = 0;                       // per worker
  std::optional<double> loss;              // of the last step, the mean over workers
  std::optional<WorkerSummary> workers;    // where they train together
  std::optional<GradientTraffic> traffic;  // where they do so by all-reduce
  // Medians over the repeats; each repeat is compared with what was measured right after it. Neither is known if the
  // baselines contradict each other.
  std::optional<double> scaling_efficiency;    // against one worker alone, times the number of workers
  std::optional<double> share_of_independent;  // against workers that exchange nothing
  // Workers that exchange nothing against one worker alone, times their number: 1 if they do not disturb each other.
  std::optional<double> independent_by_alone;
  // Workers that train together cannot be faster than those that exchange nothing, and these not faster than one alone
  // times their number. The largest factor by which one of them was; a little is noise, more means that the figures are
  // not of the same machine: something else used it meanwhile.
  double contradiction = 1;
  static constexpr double kMostContradiction = 1.25, kLeastIndependentByAlone = 0.8;
  bool baselines_contradict() const { return contradiction > kMostContradiction; }
};

// Nothing measured: all zero or none.
JobFigures job_figures(const BenchmarkSetup& setup, const BenchmarkResult& result);

}  // namespace trireme::lab
