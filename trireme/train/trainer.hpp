// Trains a network from the first step or a checkpoint to the last epoch: loops over a worker's steps (worker.hpp),
// evaluates, averages weights, writes checkpoints, and ends early on target accuracy or on request. Every worker of a
// job makes and runs one; observers handle all output. Made by `trireme train` and by user programs.
//
// An epoch ends with the step that takes its last sample; that step may also take samples of the next epoch.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/config/options.hpp"
#include "trireme/train/accuracy.hpp"

namespace trireme {
class Session;
struct Network;
}  // namespace trireme
namespace trireme::comm {
class Communicator;
}
namespace trireme::perf {
class Recorder;
}
namespace trireme::parallel {
class GradientSync;
}

namespace trireme::train {

class CheckpointFile;
class CheckpointWriter;
class DataInput;
class Evaluator;
class Job;
class MembershipLog;
class SampleLedger;
class StepTrace;
class WeightAverages;
class Worker;
struct Checkpoint;
struct EvaluationData;
struct PipelineConfig;
struct ProcessGroup;
struct TrainedOn;
struct TrainingConfig;
struct TrainingState;

// Progress as stored in a checkpoint.
struct TrainingProgress {
  std::int64_t step = 0;                    // updates done
  std::optional<double> train_seconds = 0;  // of those updates; nothing: unknown
  EpochSums epoch = {};                     // of the current epoch
};

enum class TrainingEnd : std::uint8_t { done, reached_target, interrupted };

std::string_view name_of_loss(double loss);  // "not a number (NaN)" or "infinite"

struct StepReport {
  std::int64_t step = 0, steps = 0;     // step counts from 1
  double epoch = 0;                     // done, with its fraction
  double loss = 0;                      // over this replica's samples
  std::optional<double> accuracy = {};  // same samples; if StepOptions::train_accuracy
  double learning_rate = 0;
  double seconds = 0;
};

// Covers all steps of the epoch, including those of earlier runs.
struct EpochReport {
  std::int64_t epoch = 0, step = 0;  // from 1
  double loss = 0;                   // mean over its steps; over all replicas' samples if in lock step
  double learning_rate = 0;          // of its last step
  double images_per_second = 0;      // of all replicas, training only
  double train_seconds = 0, evaluation_seconds = 0;
  std::optional<Accuracy> accuracy;  // if evaluated
};

struct EndReport {
  TrainingEnd end = TrainingEnd::done;
  double train_seconds_here = 0;             // this run's steps
  std::optional<double> train_seconds = {};  // including earlier runs
};

// Called on the training thread, between steps.
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  // Instead of steps and epochs if an earlier run did them all.
  virtual void on_nothing_left(std::int64_t /*step*/, const std::optional<Accuracy>&) {}
  virtual void on_end(const EndReport&) {}
};

// Seconds over all steps so far on this worker. Without other workers, applying gradients counts as computing.
struct TrainingSeconds {
  double input_wait = 0;
  double communication = 0;  // gradients in transit, hidden or not
  double exposed = 0;        // waiting for them and for slower workers with nothing left to compute
  double update = 0;
};

class Trainer {
 public:
  struct Options {
    std::function<void()> on_tuning = {};  // called before kernels are timed, which takes seconds
    perf::Recorder* recorder = nullptr;    // gets the spans of some steps; null: no trace
    std::string membership_log = {};       // file that the first worker of an elastic job writes; empty: none
  };
  // Collective. Error(bad_input) if there are checkpoints but no request to resume, or they are from another training.
  Trainer(const TrainingConfig& config, const ProcessGroup& group, const Options& options);
  Trainer(const TrainingConfig& config, const ProcessGroup& group) : Trainer(config, group, Options()) {}
  Trainer(Job& job, const TrainingOptions& options);                          // for user programs
  Trainer(Job& job, const Network& network, const TrainingOptions& options);  // adds the network
  ~Trainer();

  // Ends after all steps (if none is left: after an evaluation), after an epoch that reaches the target accuracy as
  // known to the first replica, or when asked to stop; always with a checkpoint. Replicas in lock step end together: a
  // stop request travels with the gradients of the next step and ends all after it, or ends the evaluation in progress.
  // Others stop individually after their step. Error(failed) if the loss is not finite.
  TrainingEnd run(std::vector<TrainerObserver*> observers = {}, const std::stop_token& stop = {});

  // For trireme/lab: the headers of these types are not installed.
  const TrainingConfig& config() const { return *config_; }
  const Worker& worker() const { return *worker_; }
  std::uint64_t hash() const;  // of all values of this worker

  std::optional<LossScaleState> loss_scale() const;  // none: the loss is not scaled (only fp16 scales it)
  std::int64_t samples() const;                      // per epoch
  std::int64_t steps() const;                        // of the whole training
  std::int64_t evaluated_samples() const;
  std::int64_t first_step() const { return first_.step; }
  double first_epoch() const;                               // in epochs
  const TrainingProgress& first() const { return first_; }  // where earlier runs stopped
  std::string resumed_from() const;                         // on the first worker
  std::int64_t unknown_steps() const;                       // of the current epoch, missing in an old checkpoint's sums
  std::string last_checkpoint() const;
  const std::string& checkpoint_problem() const { return checkpoint_problem_; }  // why the last one was not written
  const TrainingSeconds& seconds() const { return seconds_; }
  // Distinct bad records over all workers, valid after run(); and how many of them were validation images.
  std::int64_t bad_records() const { return bad_records_; }
  std::int64_t bad_validation_records() const { return bad_validation_records_; }
  std::string evaluation_preprocessing() const;  // in words; empty: no evaluation

 private:
  Trainer(Job& job, const TrainingConfig& config);
  void open_checkpoint(comm::Communicator& workers);
  void check_is_ours(const TrainingState& state) const;
  void go_on_with(std::int64_t classes, const std::map<std::string, std::string>& metadata);
  void check_data(const DataInput& input) const;
  void prepare_gradients();
  void prepare_evaluation();
  void make_evaluator(std::int64_t batch_size);
  bool takes_part_in_evaluation() const;

  TrainingEnd run_steps(const std::stop_token& stop);
  void run_step();
  StepReport run_update(double learning_rate);
  void add_seconds();
  bool is_epoch_complete() const;
  TrainingEnd end_epoch(const std::stop_token& stop);
  Evaluation evaluate(const std::stop_token& stop);
  void save();
  void write_checkpoint(const TrainingProgress& progress);
  void finish_checkpoints();
  void finish();

  const PipelineConfig& pipeline() const;
  void restore(Session& session, comm::Communicator& workers) const;
  parallel::GradientSync* sync() const;  // ends replicas together; null: no replicas
  bool goes_at_own_pace() const;
  bool is_elastic() const;
  bool is_asked_to_stop(const std::stop_token& stop);
  double mean_of_all(double here) const;         // collective if in lock step
  bool agrees_with_first(bool here) const;       // likewise
  std::optional<double> seconds_in_all() const;  // of training
  double epochs_done() const;
  double learning_rate() const;             // of the next step
  std::int64_t samples_per_update() const;  // by those who are left
  void open_membership_log(const std::string& path, const TrainingConfig& config);
  void tell(const std::function<void(TrainerObserver&)>& what);

  std::unique_ptr<TrainingConfig> config_;   // the worker completes its step
  std::unique_ptr<CheckpointFile> resumed_;  // on the first worker
  TrainingProgress first_;
  std::unique_ptr<const SampleLedger> first_samples_;
  std::unique_ptr<const TrainedOn> trained_on_;  // from the checkpoint
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<WeightAverages> averages_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<EvaluationData> evaluation_;     // null: no evaluation
  std::unique_ptr<CheckpointWriter> checkpoints_;  // on the first worker
  std::shared_ptr<const Checkpoint> last_saved_;   // likewise
  std::string checkpoint_problem_;
  std::vector<TrainerObserver*> observers_;
  std::unique_ptr<MembershipLog> membership_;  // on the first worker
  std::int64_t step_ = 0;                      // done
  double last_rate_ = 0;                       // of the last step
  double epochs_before_ = 0;                   // done before the last step
  std::int64_t missing_images_ = 0;            // in this epoch's steps, because workers are lost
  std::int64_t saved_ = 0;                     // step of the newest checkpoint
  EpochSums epoch_;                            // of the current epoch
  double seconds_here_ = 0;
  TrainingSeconds seconds_;
  std::unique_ptr<StepTrace> trace_;
  std::int64_t traced_from_ = 0;  // counted in this run's updates
  std::int64_t updates_ = 0;      // in this run so far
  std::int64_t bad_records_ = 0, bad_validation_records_ = 0;
  std::set<std::int64_t> bad_evaluated_;  // by this worker
};

}  // namespace trireme::train
