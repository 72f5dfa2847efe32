// A worker of a job, ready to run steps: pinned threads, timed kernels, a compiled step, connected replicas or servers,
// an open data set. Every worker of a job makes one the same way, through Trainer or Benchmark.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/network_file.hpp"
#include "trireme/parallel/elastic_sync.hpp"
#include "trireme/parallel/peer_watch.hpp"
#include "trireme/parallel/pipeline_sync.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/peak.hpp"
#include "trireme/perf/spinning.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/ps/worker_sync.hpp"
#include "trireme/runtime/stage_link.hpp"
#include "trireme/train/choose_parallel.hpp"
#include "trireme/train/choose_split.hpp"
#include "trireme/train/data_input.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/prepared_step.hpp"
#include "trireme/train/sample_ledger.hpp"

namespace trireme::train {

// Known before the first step.
struct WorkerSetup {
  Network model;
  perf::ThreadPlan threads;
  std::string device;  // GPU name; empty: the CPU
  std::vector<std::pair<std::string, std::string>> device_facts;
  std::string dataset, preprocessing;  // in words; empty: synthetic images
  SplitChoice split;                   // with the trials if it was chosen by measuring
  ParallelChoice parallel;             // without plans unless it was chosen by measuring
  std::vector<std::string> warnings;   // about the machine's fitness for measuring
  perf::Peak peak;                     // best of a measurement before the steps and one after
  ModelCounts counts;
  MemorySummary memory;
  Recomputation recomputation;
  std::int64_t rss_before_bytes = 0, planned_bytes = 0;  // of this process before it prepared the step; for the step
  double bytes_per_step = 0;                             // that its instructions read and write at least
  double flops_per_step = 0;                             // as the program executes them, without what is computed again
  double prepare_seconds = 0;                            // building, compiling, allocating, initial values
  int kernels_timed = 0;                                 // by the tuner, now; the others were known or had no choice
  int problems_renewed = 0;                              // of these, because the timings were old or of a busy machine
  double tuning_seconds = 0;                             // part of prepare_seconds
  // If workers train together:
  std::vector<comm::Member> members;  // by rank
  std::vector<std::int64_t> bucket_bytes;
  std::string transport;                       // that carries the buckets
  std::optional<comm::TransportFits> network;  // measurements used to choose the all-reduce; none: no measurements
  std::vector<std::string> network_problems;   // why other measurements were not used
  std::vector<ps::ServerLoad> server_loads;
  std::vector<comm::Member> servers;
  std::string all_reduce;              // algorithm for the largest bucket
  comm::Wire wire = comm::Wire::fp32;  // format of gradients in transit
  std::string gradient_path;           // route of GPU gradients, in words
  // Of a pipeline: nodes at which its parts begin, but the first; bytes that cross each per step, both ways.
  std::vector<std::string> cuts;
  std::vector<std::int64_t> cut_bytes;
};

// How a backend chooses kernels for these steps on this machine.
TuningOptions tuning_options(const StepConfig& config, const perf::Machine& machine,
                             std::function<void()> on_first = {});

std::string keep_timings(TuneCache& cache);  // a warning if they cannot be saved; else empty

// The seconds of steps that contradict the expected ones: their median if it is `factor` times shorter, or the shortest
// if even that is `factor` times longer.
std::optional<double> contradiction(const perf::Summary& measured, double expected, double factor);

void choose_gpu(StepConfig& config, const comm::Communicator& workers);  // in turn, unless one was named

// Collective. `trireme launch` gives every worker its own processors. Other launchers may leave all workers of a
// machine with all of its processors; then they divide them here.
void share_cores(StepConfig& config, comm::Communicator& workers, std::vector<std::string>& warnings);

class Worker {
 public:
  struct Options {
    std::function<void()> on_tuning = {};                // called before kernels are timed, which takes seconds
    std::function<void(const DataInput&)> on_data = {};  // called before compiling; may throw to reject the data
    // Called on the first worker after compiling: replaces the initial values, for all workers. In a pipeline called on
    // all.
    std::function<void(Session&)> restore = {};
    SampleLedger samples = {};           // of the data set's sequence: which ones are used
    perf::Recorder* recorder = nullptr;  // gets the spans of steps; null: no trace
    MemoryUse memory = {};               // but the step, which this adds
  };
  // Plans and pins threads, measures the machine's peak, builds and compiles the network. Completes the configuration
  // (learning rate, threads, classes, preprocessing), which must outlive this. Collective; all pass the same one.
  Worker(StepConfig& config, const ProcessGroup& group, Options options);

  ~Worker();  // destroys a GPU's recordings of the exchange before the exchange
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerSetup& setup() { return setup_; }
  const WorkerSetup& setup() const { return setup_; }
  const StepConfig& config() const { return config_; }
  const Backend& backend() const { return *backend_; }
  PreparedStep& step() { return *step_; }
  const PreparedStep& step() const { return *step_; }
  DataInput* input() { return input_.get(); }  // null: synthetic images
  const DataInput* input() const { return input_.get(); }
  parallel::Replicas* replicas() const { return replicas_.get(); }  // null: this worker trains alone
  ps::WorkerSync* servers() const { return servers_; }              // the replicas' servers; null: none
  perf::Recorder* recorder() const { return options_.recorder; }

  comm::Communicator& workers() const { return *workers_; }
  void leave_lost_behind();  // collective among survivors: they become the workers
  bool in_lock_step() const { return replicas_ && replicas_->sync().is_lock_step(); }

  // Runs one step and returns the loss: on the input's next batch if there is an input and it is wanted, else on the
  // current batch. A GPU receives the following batch meanwhile.
  double run_step(double learning_rate, bool on_next_batch = true);
  std::optional<double> accuracy() const;  // of the last step's images; nothing: not requested
  // For dropout: the next step is this run of an update.
  void set_run(int run);
  // After the last of this many runs of an update, which all workers have made: if some are lost, the others divide
  // the samples anew.
  void end_update(int runs = 1);
  const SampleLedger& samples() const { return samples_; }
  const comm::Team& team() const { return team_; }  // that makes the next one
  double share_of_workers() const;                  // that make the next update, of those launched
  std::optional<double> loss_of_all() const;        // of the last update, a sum over its runs; nothing: not elastic
  void expect_delay();                              // of other workers, in the next step
  double input_seconds() const { return input_seconds_; }  // how long the last step waited for its batch
  // How long a pipeline's stage waited for other stages in the last step; known on the host.
  bool has_bubbles() const;
  double bubble_seconds() const { return bubble_seconds_; }

  void count_step();  // the last step is one of those to judge by
  // Collective, after the last step: if the steps contradict the timings of kernels or the network's figures by which
  // this worker chose, says so in one line and sees to it that the next run does not rely on them.
  void judge_timings();

  // Collective, for other programs: compiles on the first worker, which times kernels, then on the others.
  void compile_in_turn(const std::function<void()>& compile);

  void measure_peak();  // keeps the best

 private:
  void measure_gpu_peak();
  comm::CostModel network_cost();
  std::unique_ptr<parallel::Replicas> make_replicas();
  std::unique_ptr<StageLink> make_link(const parallel::ReplicaOptions& options);
  std::unique_ptr<parallel::Replicas> make_stage();
  std::string why_not_between_gpus() const;
  void choose_parallel();
  MemoryUse memory_use() const;
  void open_data();
  void check_memory();
  std::optional<double> memory_limit() const;  // of the user, in bytes
  void divide_cores();
  void prepare();
  void compile_by_timings(const std::function<void()>& time, const std::function<void()>& compile);
  void time_kernels();
  void build();
  void check_same_network() const;
  void keep_new_timings();
  void judge_kernel_timings();
  void judge_network_figures();
  void describe_workers();
  double share_outcome(double loss);
  double run_on_next_batch(double learning_rate);
  double take_batch();
  void take_next_batch();
  const data::Batch& next_batch();
  int place_in_team() const;
  void name_spans(perf::Recorder& recorder);

  StepConfig& config_;
  WorkerSetup setup_;
  comm::Communicator* workers_;
  comm::Communicator* const launched_;
  std::unique_ptr<comm::Communicator> survivors_;  // become the workers if some are lost
  comm::Communicator* with_servers_;
  comm::TeamSource* teams_;
  Options options_;
  TuningOptions tuning_;
  std::shared_ptr<void> spinning_ = perf::limit_spinning_under_load();
  std::shared_ptr<Backend> backend_;
  // Of a pipeline: the replicas of this stage, between and during steps.
  std::unique_ptr<comm::Communicator> stage_, stage_in_steps_;
  std::unique_ptr<PreparedStep> step_;
  std::unique_ptr<DataInput> input_;
  bool wants_next_batch_ = false;     // while a step runs on a device
  bool batch_is_there_ = false;       // for the next step
  double beside_seconds_ = 0;         // time taken to fetch it
  std::exception_ptr batch_problem_;  // why it is missing
  double input_seconds_ = 0, bubble_seconds_ = 0;
  double step_seconds_ = 0;  // of the last step, without waiting for its batch
  // Of steps to judge by, without waits, and of reducing their last bucket, beside which nothing is computed.
  std::vector<double> compute_seconds_, last_bucket_seconds_;
  struct Trace {
    perf::Track *track = nullptr, *stage = nullptr;
    std::int32_t wait_for_batch = 0, place_batch = 0, bubble = 0;
  };
  Trace trace_;
  // Declared after the step: once destroyed, nobody writes to the step's memory.
  std::unique_ptr<parallel::PeerWatch> watch_;  // over all stages; null: GPUs exchange by themselves
  std::unique_ptr<StageLink> link_;             // to other stages
  std::unique_ptr<parallel::Replicas> replicas_;
  ps::WorkerSync* servers_ = nullptr;
  parallel::ElasticSync* elastic_ = nullptr;  // likewise the replicas'
  comm::Team team_;                           // that divides the samples
  SampleLedger samples_;
  std::uint64_t updates_ = 0;
  double update_loss_ = 0;                      // of the update's earlier runs
  parallel::PipelineSync* pipeline_ = nullptr;  // likewise the replicas'
  parallel::PipelineSync::Outcome outcome_;     // of the last step
};

}  // namespace trireme::train
