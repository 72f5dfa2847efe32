// The figures of a whole job, computed from its workers' measurements: printed at the end and kept in the record.
#pragma once

#include <optional>
#include <vector>

#include "trireme/lab/bench/benchmark.hpp"
#include "trireme/record/run_record.hpp"

namespace trireme::lab {

// All-reduce traffic, comparable with what `trireme net` measures.
struct GradientTraffic {
  double bytes = 0;                             // gradients of a step as they travel
  double bus_bytes_per_second = 0;              // 2 (n - 1) / n x bytes / communication time, hidden or not
  std::optional<double> link_bytes_per_second;  // measured between hosts; none: not measured or not used
};

struct JobFigures {
  std::vector<std::vector<double>> step_seconds;  // [repeat][step], of the slowest worker
  // Global. For workers that exchange nothing, and so do not wait for each other, the sum of their speeds.
  double images_per_second = 0;
  std::vector<double> per_repeat;
  double jitter = 0;                       // per worker
  std::optional<double> loss;              // of the last step, mean over workers
  std::optional<WorkerSummary> workers;    // if they train together
  std::optional<GradientTraffic> traffic;  // if by all-reduce
  std::optional<record::Pipeline> pipeline;
  // Medians over repeats, each compared with the baselines right after it. Unknown if baselines contradict each other.
  std::optional<double> scaling_efficiency;    // relative to one worker alone times the number of workers
  std::optional<double> share_of_independent;  // relative to workers that exchange nothing
  // Workers that exchange nothing relative to one alone times their number: 1 if they do not disturb each other.
  std::optional<double> independent_by_alone;
  // Training together cannot beat exchanging nothing, and that cannot beat one worker alone times their number. The
  // largest factor by which one did; a little is noise, more means that something else used the machine.
  double contradiction = 1;
  static constexpr double kMostContradiction = 1.25, kLeastIndependentByAlone = 0.8;
  bool baselines_contradict() const { return contradiction > kMostContradiction; }
};

JobFigures job_figures(const BenchmarkSetup& setup, const BenchmarkResult& result);  // zero if nothing was measured

record::RunRecord start_record(const BenchmarkConfig& config);  // command, time, build, machine and configuration

void fill_record(record::RunRecord& record, const Benchmark& benchmark);  // final configuration and results

}  // namespace trireme::lab
