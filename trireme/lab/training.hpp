// A training run of one worker: the loop (train/trainer.hpp) over the steps of its place (workplace.hpp), with data,
// evaluation, averages and checkpoints. Every worker makes one and runs it. Made by `trireme train` and by tests.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <stop_token>
#include <vector>

#include "trireme/lab/step_trace.hpp"
#include "trireme/lab/training_config.hpp"
#include "trireme/lab/workplace.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/trainer.hpp"
#include "trireme/train/weight_averages.hpp"

namespace trireme::lab {

// An evaluation of a data set's validation part, or of a share of it.
struct EvaluationData {
  std::shared_ptr<const data::Dataset> dataset;
  data::Glimpse images;
  data::PipelineOptions pipeline;  // broken images are named and left out
};
EvaluationData open_evaluation_data(const DataConfig& config, const ModelInfo& model, std::int64_t batch_size);

// What several workers have counted. Nothing where one was stopped: the rest is of a part of the samples. Error(failed)
// where every image is broken.
train::Evaluation added_up(std::span<const std::optional<train::Accuracy>> workers);

// Seconds of all steps so far on this worker. Where it trains by itself, gradients are applied as part of computing.
struct StepSeconds {
  double input_wait = 0;
  double communication = 0;  // parts of the gradients were being exchanged, hidden or not
  double exposed = 0;        // waiting for that, and for slower workers, with nothing left to compute
  double update = 0;         // applying gradients
};

class Training {
 public:
  struct Crew {
    comm::Communicator& workers;
    comm::Communicator* with_servers = nullptr;
    perf::Recorder* recorder = nullptr;  // gets the spans of some steps; none: nobody traces
  };
  // Collective. Error(bad_input) where there are checkpoints already and they are not asked for, or where they are of
  // another training.
  Training(const TrainingConfig& config, const Crew& crew, std::function<void()> on_tuning = {});
  ~Training();

  train::TrainingEnd run(std::vector<train::TrainerObserver*> observers, const std::stop_token& stop = {});

  const TrainingConfig& config() const { return config_; }
  const BenchmarkSetup& setup() const { return place_->setup(); }
  std::int64_t samples() const { return place_->input()->samples(); }  // in an epoch
  std::int64_t evaluated_samples() const { return evaluation_.dataset ? evaluation_.dataset->size() : 0; }
  std::int64_t first_step() const { return first_.step; }
  double first_epoch() const;                                                    // the same in epochs
  const train::TrainingProgress& first() const { return first_; }                // where earlier runs have left it
  std::string resumed_from() const { return resumed_ ? resumed_->path() : ""; }  // on the first worker
  // How many steps of the epoch that goes on are not in what is known of it: the checkpoint is an old one.
  std::int64_t unknown_steps() const;
  std::string last_checkpoint() const { return checkpoints_ ? checkpoints_->last_path() : ""; }
  const std::string& checkpoint_problem() const { return checkpoint_problem_; }  // why the last one was not written
  const StepSeconds& step_seconds() const { return step_seconds_; }
  // Different ones of all workers, when the run has ended; those among them that were to be evaluated.
  std::int64_t bad_records() const { return bad_records_; }
  std::int64_t bad_validation_records() const { return bad_validation_records_; }
  // What is done to the validation images, in words; empty: nobody evaluates.
  std::string evaluation_preprocessing() const {
    return evaluation_.dataset ? data::describe(evaluation_.pipeline.preprocessing) : "";
  }
  std::optional<LossScaleState> loss_scale() const { return place_->step().loss_scale(); }

 private:
  void open_checkpoint(comm::Communicator& workers);
  void check_is_ours(const train::TrainingState& state) const;
  void go_on_with(std::int64_t classes, const train::Metadata& metadata);
  void check_data(const DataInput& input) const;
  void prepare_evaluation();
  void make_evaluator(std::int64_t batch_size);
  double run_update(double learning_rate);
  bool is_traced() const;
  void add_step_seconds();
  train::Evaluation evaluate(const std::stop_token& stop);
  void save(const train::TrainingProgress& progress);
  void finish_checkpoints();
  bool takes_part_in_evaluation() const;

  TrainingConfig config_;
  std::unique_ptr<train::CheckpointFile> resumed_;  // on the first worker
  train::TrainingProgress first_;
  std::int64_t first_sample_ = 0;
  std::optional<train::TrainedOn> trained_on_;  // by the checkpoint
  std::unique_ptr<Workplace> place_;
  std::unique_ptr<train::WeightAverages> averages_;
  std::unique_ptr<train::Evaluator> evaluator_;
  EvaluationData evaluation_;
  std::unique_ptr<train::CheckpointWriter> checkpoints_;  // on the first worker
  std::shared_ptr<const train::Checkpoint> last_saved_;   // likewise
  std::string checkpoint_problem_;
  StepSeconds step_seconds_;
  StepTrace trace_;
  std::int64_t traced_from_ = 0;  // of the updates of this run
  std::int64_t updates_ = 0;      // in this run so far
  std::int64_t bad_records_ = 0, bad_validation_records_ = 0;
  std::set<std::int64_t> bad_evaluated_;  // by this worker
};

}  // namespace trireme::lab
