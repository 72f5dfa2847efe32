// Training a network, from the first step or a checkpoint to the last epoch: the loop over a worker's steps
// (worker.hpp), with evaluation, averages of the weights, checkpoints, and an early end when the network is good enough
// or the user wants it. Every worker of a job makes one and runs it. What is shown and written beside it is its
// observers' business. Made by `trireme train` and by programs of one's own.
//
// An epoch ends with the step that takes the last of its samples; that step may take samples of the next one too.
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

#include "trireme/train/accuracy.hpp"
#include "trireme/train/options.hpp"

namespace trireme {
struct Network;
}
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
class StepTrace;
class WeightAverages;
class Worker;
struct Checkpoint;
struct EvaluationData;
struct ProcessGroup;
struct TrainedOn;
struct TrainingConfig;
struct TrainingState;

// Where it stands, as a checkpoint has it.
struct TrainingProgress {
  std::int64_t step = 0;                    // updates done
  std::optional<double> train_seconds = 0;  // that they took; nothing: nobody knows
  EpochSums epoch = {};                     // of the epoch that goes on
};

enum class TrainingEnd : std::uint8_t { done, reached_target, interrupted };

// "not a number (NaN)" or "infinite": what a loss is that is not finite.
std::string_view name_of_loss(double loss);

struct StepReport {
  std::int64_t step = 0, steps = 0;     // from 1, of
  double epoch = 0;                     // done, with its part
  double loss = 0;                      // of this replica's samples
  std::optional<double> accuracy = {};  // likewise, if StepOptions::train_accuracy asks for it
  double learning_rate = 0;
  double seconds = 0;
};

// Of all its steps, also those of earlier runs that this one has gone on from.
struct EpochReport {
  std::int64_t epoch = 0, step = 0;  // from 1
  double loss = 0;                   // mean of its steps; of all replicas' samples if these are in lock step
  double learning_rate = 0;          // of its last step
  double images_per_second = 0;      // of all replicas, training alone
  double train_seconds = 0, evaluation_seconds = 0;
  std::optional<Accuracy> accuracy;  // if it was evaluated
};

struct EndReport {
  TrainingEnd end = TrainingEnd::done;
  double train_seconds_here = 0;             // of this run's steps
  std::optional<double> train_seconds = {};  // with those of the runs before it
};

// Called on the thread that trains, between steps.
class TrainerObserver {
 public:
  virtual ~TrainerObserver() = default;
  virtual void on_step(const StepReport&) {}
  virtual void on_epoch(const EpochReport&) {}
  // Instead of steps and epochs: an earlier run has done them all.
  virtual void on_nothing_left(std::int64_t /*step*/, const std::optional<Accuracy>&) {}
  virtual void on_end(const EndReport&) {}
};

// Seconds of all steps so far on this worker. If it trains by itself, gradients are applied as part of computing.
struct TrainingSeconds {
  double input_wait = 0;
  double communication = 0;  // parts of the gradients were being exchanged, hidden or not
  double exposed = 0;        // waiting for that, and for slower workers, with nothing left to compute
  double update = 0;         // applying gradients
};

class Trainer {
 public:
  struct Options {
    std::function<void()> on_tuning = {};  // called when kernels have to be timed first, which takes seconds
    perf::Recorder* recorder = nullptr;    // gets the spans of some steps; none: nobody traces
  };
  // Collective. Error(bad_input) if there are checkpoints already and they are not asked for, or if they are of another
  // training.
  Trainer(const TrainingConfig& config, const ProcessGroup& group, const Options& options);
  Trainer(const TrainingConfig& config, const ProcessGroup& group) : Trainer(config, group, Options()) {}
  // For a program's own: of a network that is known by its name, or of one that becomes known here.
  Trainer(Job& job, const TrainingOptions& options);
  Trainer(Job& job, const Network& network, const TrainingOptions& options);
  ~Trainer();

  // Ends after all steps (if none is left: after an evaluation), after an epoch with the accuracy asked for, as the
  // first replica knows it, or when asked to stop; with a checkpoint each time. Replicas in lock step end together: the
  // wish of any one goes with the gradients of its next step and ends all after that, or ends the evaluation that it
  // comes in. Others end each by its own wish, after the step. Error(failed) if the loss is not finite.
  TrainingEnd run(std::vector<TrainerObserver*> observers = {}, const std::stop_token& stop = {});

  // For the laboratory: the headers of these are not installed.
  const TrainingConfig& config() const { return *config_; }
  const Worker& worker() const { return *worker_; }

  const std::vector<std::string>& warnings() const;  // about the machine and the data, known before the first step
  std::optional<LossScaleState> loss_scale() const;  // none: the loss is not scaled (it is with fp16)
  std::int64_t samples() const;                      // in an epoch
  std::int64_t steps() const;                        // of the whole training
  std::int64_t evaluated_samples() const;
  std::int64_t first_step() const { return first_.step; }
  double first_epoch() const;                               // the same in epochs
  const TrainingProgress& first() const { return first_; }  // where earlier runs have left it
  std::string resumed_from() const;                         // on the first worker
  // How many steps of the epoch that goes on are not in what is known of it: the checkpoint is an old one.
  std::int64_t unknown_steps() const;
  std::string last_checkpoint() const;
  const std::string& checkpoint_problem() const { return checkpoint_problem_; }  // why the last one was not written
  const TrainingSeconds& seconds() const { return seconds_; }
  // Different ones of all workers, when the run has ended; those among them that were to be evaluated.
  std::int64_t bad_records() const { return bad_records_; }
  std::int64_t bad_validation_records() const { return bad_validation_records_; }
  // What is done to the validation images, in words; empty: nobody evaluates.
  std::string evaluation_preprocessing() const;

 private:
  void open_checkpoint(comm::Communicator& workers);
  void check_is_ours(const TrainingState& state) const;
  void go_on_with(std::int64_t classes, const std::map<std::string, std::string>& metadata);
  void check_data(const DataInput& input) const;
  void prepare_gradients();
  void prepare_evaluation();
  void make_evaluator(std::int64_t batch_size);
  bool takes_part_in_evaluation() const;

  TrainingEnd run_steps(const std::stop_token& stop);
  TrainingEnd evaluate_only(const std::stop_token& stop);
  void run_step();
  StepReport run_update(double learning_rate);
  bool is_traced() const;
  void add_seconds();
  bool is_epoch_complete() const;
  TrainingEnd end_epoch(const std::stop_token& stop);
  Evaluation evaluate(const std::stop_token& stop);
  void save();
  void write_checkpoint(const TrainingProgress& progress);
  void finish_checkpoints();
  void finish();

  parallel::GradientSync* sync() const;  // by which replicas end together; none: there are none
  bool goes_at_own_pace() const;
  bool is_asked_to_stop(const std::stop_token& stop);
  bool has_another_ended() const;
  double mean_of_all(double here) const;         // collective if in lock step
  bool agrees_with_first(bool here) const;       // likewise
  std::optional<double> seconds_in_all() const;  // of training
  double epochs_at(std::int64_t step) const;
  void tell(const std::function<void(TrainerObserver&)>& what);

  std::unique_ptr<TrainingConfig> config_;   // its step is completed by the worker
  std::unique_ptr<CheckpointFile> resumed_;  // on the first worker
  TrainingProgress first_;
  std::int64_t first_sample_ = 0;
  std::unique_ptr<const TrainedOn> trained_on_;  // by the checkpoint
  std::unique_ptr<Worker> worker_;
  std::unique_ptr<WeightAverages> averages_;
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<EvaluationData> evaluation_;     // none: nobody evaluates
  std::unique_ptr<CheckpointWriter> checkpoints_;  // on the first worker
  std::shared_ptr<const Checkpoint> last_saved_;   // likewise
  std::string checkpoint_problem_;
  std::vector<TrainerObserver*> observers_;
  std::int64_t step_ = 0;   // done
  std::int64_t saved_ = 0;  // the step of the newest checkpoint
  EpochSums epoch_;         // of the one that goes on
  double seconds_here_ = 0;
  TrainingSeconds seconds_;
  std::unique_ptr<StepTrace> trace_;
  std::int64_t traced_from_ = 0;  // of the updates of this run
  std::int64_t updates_ = 0;      // in this run so far
  std::int64_t bad_records_ = 0, bad_validation_records_ = 0;
  std::set<std::int64_t> bad_evaluated_;  // by this worker
};

}  // namespace trireme::train
