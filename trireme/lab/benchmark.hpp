// Measures how fast this process trains a network (or runs it forward) on synthetic images: warm-up steps, then timed
// ones. Made by `trireme bench` and by tests; what it shows while running is an observer's business, and a RunRecord is
// made from it afterwards by benchmark_record.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "trireme/lab/choose_split.hpp"
#include "trireme/lab/prepared_step.hpp"
#include "trireme/perf/peak.hpp"

namespace trireme::lab {

// What is known before the first step.
struct BenchmarkSetup {
  BenchmarkConfig config;  // with the learning rate decided
  ModelInfo model;
  perf::ThreadPlan threads;
  SplitChoice split;                  // with what was tried, where it was chosen by measuring
  std::vector<std::string> warnings;  // about the machine's fitness for measuring
  perf::Peak peak;                    // the best of a measurement before the steps and, once they are done, one after
  ModelCounts counts;
  MemorySummary memory;
  Recomputation recomputation;
  double flops_per_step = 0;   // as the program executes them, without what is computed again
  double prepare_seconds = 0;  // building, compiling, allocating, initial values
  int kernels_timed = 0;       // by the tuner, now; the others were known or had no choice
  double tuning_seconds = 0;   // part of prepare_seconds
};

struct BenchmarkResult {
  std::vector<std::vector<double>> step_seconds;  // [repeat][step]
  std::vector<std::vector<double>> losses;        // the same order
  std::int64_t warmup_steps = 0;                  // done
  bool interrupted = false;
  bool out_of_time = false;  // max_seconds ended warm-up or a repeat early
};

struct StepEvent {
  std::int64_t repeat = 0;  // from 0
  std::int64_t step = 0;    // from 1, within the warm-up or the repeat
  std::int64_t steps = 0;   // at most this many
  double loss = 0;
  double elapsed_seconds = 0;                 // since the first step of the run
  std::span<const double> step_seconds = {};  // of this repeat so far; none in warm-up
};

// Called between steps, outside what is timed.
class BenchmarkObserver {
 public:
  virtual ~BenchmarkObserver() = default;
  virtual void on_start(const BenchmarkSetup&) {}
  virtual void on_warmup_step(const StepEvent&) {}
  virtual void on_step(const StepEvent&) {}
  // Also when the run was interrupted or failed: what was measured until then.
  virtual void on_end(const BenchmarkSetup&, const BenchmarkResult&) {}
};

// How a backend is to choose kernels for this benchmark on this CPU.
TuningOptions tuning_options(const BenchmarkConfig& config, const std::string& cpu,
                             std::function<void()> on_first = {});

// Saves the timings; gives back a warning where they cannot be kept.
std::string keep_timings(TuneCache& cache);

class Benchmark {
 public:
  // Plans and binds threads, measures the machine's peak, builds and compiles the network. on_tuning is called when
  // kernels have to be timed first, which takes seconds.
  explicit Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning = {});

  // Once. Ends early, with what was measured so far, when stop is requested or the time is up. Throws Error(failed) if
  // the loss is not finite; result() holds what was measured until then.
  void run(BenchmarkObserver& observer, std::stop_token stop = {});

  const BenchmarkSetup& setup() const { return setup_; }
  const BenchmarkResult& result() const { return result_; }
  // Of the first group of cores.
  const Executable& executable() const { return step_->executable(); }

 private:
  struct Clock;

  void divide_cores(const TuningOptions& tuning);
  void build(const TuningOptions& tuning);
  void measure_peak();
  void warm_up(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock);
  void run_repeat(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock, std::int64_t repeat);
  double run_step();  // returns the loss
  void check_finite(double loss) const;

  BenchmarkSetup setup_;
  BenchmarkResult result_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<PreparedStep> step_;
  std::int64_t steps_done_ = 0;
};

// Speed as tf_cnn_benchmarks gives it: images over the mean step time, with the standard error and the jitter of the
// single steps' speeds. None: all zero.
struct Throughput {
  double images_per_second = 0, uncertainty = 0, jitter = 0;
};
Throughput throughput(std::span<const double> step_seconds, std::int64_t batch_size);

// The timed steps of all repeats in one.
std::vector<double> all_step_seconds(const BenchmarkResult& result);

}  // namespace trireme::lab
