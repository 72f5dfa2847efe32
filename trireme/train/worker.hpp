// A worker of a job, ready to run steps: threads on their cores, kernels timed, the step compiled, the other replicas
// or the servers found, the data set open. Every worker of a job makes one, alike. Made by Trainer and by Benchmark.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/network_file.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/peak.hpp"
#include "trireme/ps/worker_sync.hpp"
#include "trireme/train/choose_split.hpp"
#include "trireme/train/data_input.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/prepared_step.hpp"

namespace trireme::train {

// What is known before the first step.
struct WorkerSetup {
  Network model;
  perf::ThreadPlan threads;
  std::string device;  // the GPU; empty: the CPU
  std::vector<std::pair<std::string, std::string>> device_facts;
  std::string dataset, preprocessing;  // in words; empty: synthetic images
  SplitChoice split;                   // with what was tried, where it was chosen by measuring
  std::vector<std::string> warnings;   // about the machine's fitness for measuring
  perf::Peak peak;                     // the best of a measurement before the steps and, once they are done, one after
  ModelCounts counts;
  MemorySummary memory;
  Recomputation recomputation;
  double bytes_per_step = 0;   // that its instructions read and write at least
  double flops_per_step = 0;   // as the program executes them, without what is computed again
  double prepare_seconds = 0;  // building, compiling, allocating, initial values
  int kernels_timed = 0;       // by the tuner, now; the others were known or had no choice
  int problems_renewed = 0;    // of these, because the timings were old or of a busy machine
  double tuning_seconds = 0;   // part of prepare_seconds
  // Where workers train together.
  std::vector<comm::Member> members;  // by rank
  std::vector<std::int64_t> bucket_bytes;
  std::string transport;                       // what carries them
  std::optional<comm::TransportFits> network;  // what was measured of it, by which all-reduce is chosen; none: nothing
  std::vector<std::string> network_problems;   // why other measurements of it were not used
  std::vector<ps::ServerLoad> server_loads;
  std::vector<comm::Member> servers;
  std::string all_reduce;              // what the largest bucket is reduced by
  comm::Wire wire = comm::Wire::fp32;  // and in which form it travels
  std::string gradient_path;           // of GPUs, in words: which way theirs go
};

// How a backend chooses kernels for these steps on this machine.
TuningOptions tuning_options(const StepConfig& config, const perf::Machine& machine,
                             std::function<void()> on_first = {});

// Saves the timings; gives back a warning where they cannot be kept.
std::string keep_timings(TuneCache& cache);

// The workers of a machine take its GPUs in turn, unless one was named.
void choose_gpu(StepConfig& config, const comm::Communicator& workers);

// Collective. `trireme launch` has given every worker processors of its own. Other launchers may have left all workers
// of a machine with all of its processors; then they divide them here.
void share_cores(StepConfig& config, comm::Communicator& workers, std::vector<std::string>& warnings);

class Worker {
 public:
  struct Options {
    std::function<void()> on_tuning = {};  // called when kernels have to be timed first, which takes seconds
    // Called when the data set is open, before anything is compiled; may refuse it.
    std::function<void(const DataInput&)> on_data = {};
    // Called on the first worker when the step is compiled: sets other values than the initial ones, for all workers.
    std::function<void(Session&)> restore = {};
    std::int64_t first_sample = 0;       // of the data set's sequence: what comes first
    perf::Recorder* recorder = nullptr;  // gets the spans of steps; none: nobody traces
    // Programs that will have memory beside the step's, such as evaluation's.
    std::vector<StepConfig> beside = {};
  };
  // Plans and binds threads, measures the machine's peak, builds and compiles the network. Completes the configuration,
  // which outlives this: learning rate, threads, classes, preprocessing. Collective if there are several workers, which
  // must have the same configuration.
  Worker(StepConfig& config, const ProcessGroup& group, Options options);

  // What a GPU has recorded of the exchange goes before the exchange does.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  WorkerSetup& setup() { return setup_; }
  const WorkerSetup& setup() const { return setup_; }
  const StepConfig& config() const { return config_; }
  const Backend& backend() const { return *backend_; }
  PreparedStep& step() { return *step_; }
  const PreparedStep& step() const { return *step_; }
  DataInput* input() { return input_.get(); }  // none: synthetic images
  const DataInput* input() const { return input_.get(); }
  parallel::Replicas* replicas() const { return replicas_.get(); }  // none: this worker trains by itself
  ps::WorkerSync* servers() const { return servers_; }              // of the replicas, where they agree by servers
  perf::Recorder* recorder() const { return options_.recorder; }

  comm::Communicator& workers() const { return *workers_; }
  void leave_lost_behind();  // collective between those who are left: they are the workers from now on
  bool in_lock_step() const { return replicas_ && replicas_->sync().is_lock_step(); }

  // One step: on the next batch of the input where there is one and it is wanted, else on the batch in place. A GPU
  // gets the batch after it meanwhile. Returns the loss.
  double run_step(double learning_rate, bool on_next_batch = true);
  double input_seconds() const { return input_seconds_; }  // that the last one was held up by its batch

  // Collective, for programs beside the step: compiles on the first worker, which times what has to be, and then on the
  // others, by its timings.
  void compile_in_turn(const std::function<void()>& compile);

  // Keeps the best of this measurement and those before.
  void measure_peak();

 private:
  void measure_gpu_peak();
  comm::CostModel network_cost();
  std::unique_ptr<parallel::Replicas> make_replicas();
  std::string why_not_between_gpus() const;
  void open_data();
  void check_memory();
  void divide_cores();
  void prepare();
  void compile_by_timings(const std::function<void()>& time, const std::function<void()>& compile);
  void time_kernels();
  void build();
  void keep_new_timings();
  void describe_workers();
  double take_batch();
  void take_next_batch();
  const data::Batch& next_batch();
  void name_spans(perf::Recorder& recorder);

  StepConfig& config_;
  WorkerSetup setup_;
  comm::Communicator* workers_;
  std::unique_ptr<comm::Communicator> survivors_;  // who are the workers if some were lost
  comm::Communicator* with_servers_;
  Options options_;
  TuningOptions tuning_;
  std::shared_ptr<Backend> backend_;
  std::unique_ptr<PreparedStep> step_;
  std::unique_ptr<DataInput> input_;
  bool wants_next_batch_ = false;     // while a step runs on a device
  bool batch_is_there_ = false;       // of the next step
  double beside_seconds_ = 0;         // that taking it took
  std::exception_ptr batch_problem_;  // why it is not
  double input_seconds_ = 0;
  struct Trace {
    perf::Track* track = nullptr;
    std::int32_t wait_for_batch = 0, place_batch = 0;
  };
  Trace trace_;
  // After the step: when that goes, nobody writes into its variables any more.
  std::unique_ptr<parallel::Replicas> replicas_;
  ps::WorkerSync* servers_ = nullptr;
};

}  // namespace trireme::train
