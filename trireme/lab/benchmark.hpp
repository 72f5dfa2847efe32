// Measures how fast workers train a network (or run it forward), on synthetic images or on those of a data set: warm-up
// steps, then timed ones. Every worker is a process that makes one of these and calls the same functions. Made by
// `trireme bench` and by tests; what it shows while running is an observer's business, and a RunRecord is made from it
// afterwards by benchmark_record.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "trireme/lab/benchmark_config.hpp"
#include "trireme/lab/task_reports.hpp"
#include "trireme/train/step_trace.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::lab {

// What workers reach when they do not train together, measured between the repeats; images per second.
struct Baseline {
  std::vector<double> alone;        // [repeat]: one worker, the others waiting
  std::vector<double> independent;  // [repeat]: all workers together, exchanging nothing
};

// The same steps with the images of a data set and with a batch that stays in place, as synthetic images do, measured
// in turns; images per second of all workers.
struct InputCost {
  std::vector<double> real, in_place;  // [repeat]

  std::vector<double> overheads() const;  // (in place - real) / in place, in percent
};

// What is known before the first step; the peak is measured again after the last.
struct BenchmarkSetup : train::WorkerSetup {
  BenchmarkConfig config;  // as the worker has resolved it
};

BenchmarkSetup setup_of(const train::Worker& worker, const BenchmarkConfig& config = {});

struct BenchmarkResult {
  std::vector<std::vector<double>> step_seconds;  // [repeat][step]
  std::vector<std::vector<double>> losses;        // the same order
  std::int64_t warmup_steps = 0;                  // done
  bool interrupted = false;
  bool out_of_time = false;  // max_seconds ended warm-up or a repeat early
  Baseline baseline;
  InputCost input_cost;
  std::int64_t bad_records = 0;                     // different ones of all workers, passed over
  std::vector<RankReport> ranks;                    // once all steps are done
  std::int64_t device_bytes = 0;                    // of the GPU's memory, that training takes; none without one
  std::optional<train::LossScaleState> loss_scale;  // once all steps are done
  std::uint64_t replicas_agree = 0;   // steps after which the replicas were found to be the same to the bit; 0: never
  std::vector<ServerReport> servers;  // once all steps are done
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

class Benchmark {
 public:
  // Plans and binds threads, measures the machine's peak, builds and compiles the network. on_tuning is called when
  // kernels have to be timed first, which takes seconds. Collective if there are several workers; the group has
  // config.distribution.workers ranks. A recorder gets the spans of the first config.trace_steps timed steps.
  Benchmark(const BenchmarkConfig& config, const train::ProcessGroup& group, std::function<void()> on_tuning = {},
            perf::Recorder* recorder = nullptr);
  explicit Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning = {});  // one worker

  // Once. Ends early, with what was measured so far, when stop is requested on any worker or the time is up. Throws
  // Error(failed) if the loss is not finite; result() holds what was measured until then.
  void run(BenchmarkObserver& observer, std::stop_token stop = {});

  const BenchmarkSetup& setup() const { return setup_; }
  const BenchmarkResult& result() const { return result_; }
  // Of the first group of cores.
  const Executable& executable() const { return worker_.step().executable(); }

 private:
  struct Clock;

  // Why steps end before all are done.
  enum class End : std::uint8_t { no, out_of_time, interrupted };
  // What this rank adds up over the timed steps.
  struct StepTimes {
    std::int64_t steps = 0;
    double update = 0, wait = 0, input = 0;
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
  double settle();  // until no values are on their way any more; the seconds that took
  void add_times();
  double shown_loss(double loss, std::int64_t step);
  void check_finite(double loss) const;
  void check_replicas();
  RankReport rank_report() const;
  std::vector<ServerReport> server_reports() const;

  std::unique_ptr<comm::Communicator> alone_;  // the one worker's, if nobody gave a group
  BenchmarkSetup setup_;
  train::Worker worker_;
  train::StepTrace trace_;
  BenchmarkResult result_;
  double slow_seconds_ = 0;   // this worker is made slow on purpose, for tests
  bool keeps_batch_ = false;  // steps run on the batch that is in place
  StepTimes times_;
  // Of the servers, on rank 0: what they last said, and what went through them in timed steps.
  std::vector<std::string> statistics_;
  std::vector<Traffic> traffic_;
  std::int64_t steps_done_ = 0;
};

// Speed as tf_cnn_benchmarks gives it: images over the mean step time, with the standard error and the jitter of the
// single steps' speeds. None: all zero.
struct Throughput {
  double images_per_second = 0, uncertainty = 0, jitter = 0;
};
Throughput throughput(std::span<const double> step_seconds, std::int64_t batch_size);

// Whether a line is shown for a step, counted from 1.
bool is_displayed(std::int64_t step, std::int64_t display_every);

// The timed steps of all repeats in one.
std::vector<double> joined(const std::vector<std::vector<double>>& repeats);

}  // namespace trireme::lab
