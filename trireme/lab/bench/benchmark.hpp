// Measures how fast workers train a network (or run it forward) on synthetic or real images: warm-up steps, then timed
// ones. Every worker process makes one and calls the same functions. Made by `trireme bench` and by tests; observers
// show progress, and job_figures.hpp makes a RunRecord of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "trireme/lab/bench/benchmark_config.hpp"
#include "trireme/lab/bench/task_reports.hpp"
#include "trireme/train/step_trace.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::lab {

// Speed of workers that do not train together, measured between the repeats; images per second.
struct Baseline {
  std::vector<double> alone;        // [repeat]: one worker, the others idle
  std::vector<double> independent;  // [repeat]: all workers, exchanging nothing
};

// The same steps with real images and with a fixed batch, measured alternately; images per second of all workers.
struct InputCost {
  std::vector<double> real, in_place;  // [repeat]

  std::vector<double> overheads() const;  // (in place - real) / in place, in percent
};

// Known before the first step; the peak is measured again after the last.
struct BenchmarkSetup : train::WorkerSetup {
  BenchmarkConfig config;  // as the worker resolved it
};

BenchmarkSetup setup_of(const train::Worker& worker);  // without timing

struct BenchmarkResult {
  std::vector<std::vector<double>> step_seconds;  // [repeat][step]
  std::vector<std::vector<double>> losses;        // same order
  std::int64_t warmup_steps = 0;                  // done
  bool interrupted = false;
  bool out_of_time = false;  // max_seconds ended warm-up or a repeat early
  Baseline baseline;
  InputCost input_cost;
  std::int64_t bad_records = 0;                     // distinct ones skipped, over all workers
  std::vector<RankReport> ranks;                    // once all steps are done
  std::int64_t device_bytes = 0;                    // GPU memory that training takes; 0 without a GPU
  std::optional<train::LossScaleState> loss_scale;  // once all steps are done
  std::uint64_t replicas_agree = 0;         // last step after which the replicas were found bit-identical; 0: never
  std::vector<record::ServerLoad> servers;  // once all steps are done
};

struct StepEvent {
  std::int64_t repeat = 0;  // from 0
  std::int64_t step = 0;    // from 1, within the warm-up or the repeat
  std::int64_t steps = 0;   // at most
  double loss = 0;
  double elapsed_seconds = 0;                 // since the first step of the run
  std::span<const double> step_seconds = {};  // of this repeat so far; empty in warm-up
};

// Called between steps, outside the timed parts.
class BenchmarkObserver {
 public:
  virtual ~BenchmarkObserver() = default;
  virtual void on_start(const BenchmarkSetup&) {}
  virtual void on_warmup_step(const StepEvent&) {}
  virtual void on_step(const StepEvent&) {}
  // Also called if the run was interrupted or failed, with what was measured until then.
  virtual void on_end(const BenchmarkSetup&, const BenchmarkResult&) {}
};

class Benchmark {
 public:
  // Sets up a Worker. Calls on_tuning before kernels are timed, which takes seconds. Collective; the group has
  // config.distribution.workers ranks. The recorder gets the spans of the first config.trace_steps timed steps.
  Benchmark(const BenchmarkConfig& config, const train::ProcessGroup& group, std::function<void()> on_tuning = {},
            perf::Recorder* recorder = nullptr);
  explicit Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning = {});  // one worker

  // Call once. Ends early with the results so far if any worker is asked to stop or time is up. Error(failed) if the
  // loss is not finite; result() keeps what was measured until then.
  void run(BenchmarkObserver& observer, std::stop_token stop = {});

  const BenchmarkSetup& setup() const { return setup_; }
  const BenchmarkResult& result() const { return result_; }
  // Of the first core group.
  const Executable& executable() const { return worker_.step().executable(); }

 private:
  struct Clock;

  enum class End : std::uint8_t { no, out_of_time, interrupted };  // why steps end early
  // This rank's sums over the timed steps.
  struct StepTimes {
    std::int64_t steps = 0;
    double update = 0, wait = 0, bubble = 0, input = 0;
    std::vector<double> bucket_seconds;
  };

  Benchmark(const BenchmarkConfig& config, std::unique_ptr<comm::Communicator> alone, std::function<void()> on_tuning);
  const BenchmarkConfig& config() const { return setup_.config; }
  void warm_up(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock);
  void run_repeat(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock, std::int64_t repeat);
  void run_baselines(const std::stop_token& stop);
  double measure_alone(const std::stop_token& stop, bool takes_part);
  void run_in_place(const std::stop_token& stop);
  double together(const std::vector<double>& step_seconds);
  double run_step();  // returns the loss
  double run_timed_step(std::int64_t repeat, std::int64_t done);
  End vote(End wish, bool first);
  bool ends(bool asked, bool out_of_time, bool first);
  void agree_on_interrupt(bool asked);
  void barrier(bool timed);
  void count_traffic(int sign);
  double settle();  // waits until no values are in transit; returns the seconds that took
  void add_times();
  double shown_loss(double loss, std::int64_t step);
  void check_finite(double loss) const;
  void check_replicas();
  RankReport rank_report() const;
  std::vector<record::ServerLoad> server_loads() const;

  std::unique_ptr<comm::Communicator> alone_;  // the single worker's, if no group was given
  BenchmarkSetup setup_;
  train::Worker worker_;
  train::StepTrace trace_;
  BenchmarkResult result_;
  double slow_seconds_ = 0;   // slows this worker down on purpose, for tests
  bool keeps_batch_ = false;  // steps reuse the current batch
  StepTimes times_;
  // On rank 0, of the servers: their last statistics, and their traffic in timed steps.
  std::vector<std::string> statistics_;
  std::vector<Traffic> traffic_;
  std::int64_t steps_done_ = 0;
};

// Speed as tf_cnn_benchmarks reports it: images over the mean step time, with the standard error and jitter of the
// single steps' speeds. All zero without steps.
struct Throughput {
  double images_per_second = 0, uncertainty = 0, jitter = 0;
};
Throughput throughput(std::span<const double> step_seconds, std::int64_t batch_size);

bool is_displayed(std::int64_t step, std::int64_t display_every);  // steps count from 1

std::vector<double> joined(const std::vector<std::vector<double>>& repeats);  // timed steps of all repeats

}  // namespace trireme::lab
