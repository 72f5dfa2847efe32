// The loop of training: step after step, with an evaluation and a line at the end of each epoch, checkpoints, and an
// early end when the network is good enough or the user wants it. What a step is, how it is evaluated and kept are its
// makers' business (lab/training.hpp); what is shown and written is its observers'.
//
// An epoch ends with the step that takes the last of its samples; that step may take samples of the next one too.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/optim/schedule.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/gradient_sync.hpp"

namespace trireme::train {

// Where it stands, as a checkpoint has it.
struct TrainingProgress {
  std::int64_t step = 0;                    // updates done
  std::optional<double> train_seconds = 0;  // that they took; nothing: nobody knows
  EpochSums epoch = {};                     // of the epoch that goes on
};

struct TrainerOptions {
  std::int64_t samples_per_epoch = 1;
  std::int64_t samples_per_step = 1;  // of all replicas, and of all runs that make an update
  double epochs = 1;
  LearningRateSchedule schedule;
  std::int64_t evaluate_every = 1;    // epochs; 0: only at the end
  std::int64_t checkpoint_every = 0;  // steps; 0: with each epoch
  double target_accuracy = 0;         // top-1 share at which it is good enough; 0: none
  TrainingProgress first = {};        // where earlier runs have left it
};

enum class TrainingEnd : std::uint8_t { done, reached_target, interrupted };

// "not a number (NaN)" or "infinite": what a loss is that is not finite.
std::string_view name_of_loss(double loss);

struct StepReport {
  std::int64_t step = 0, steps = 0;  // from 1, of
  double epoch = 0;                  // done, with its part
  double loss = 0;                   // of this replica's samples
  double learning_rate = 0;
  double seconds = 0;
};

// Of all its steps, also those of earlier runs that this one has gone on from.
struct EpochReport {
  std::int64_t epoch = 0, step = 0;  // from 1
  double loss = 0;                   // mean of its steps; of all replicas' samples where these are in lock step
  double learning_rate = 0;          // of its last step
  double images_per_second = 0;      // of all replicas, training alone
  double train_seconds = 0, evaluation_seconds = 0;
  std::optional<Accuracy> accuracy;  // where it was evaluated
};

struct EndReport {
  TrainingEnd end = TrainingEnd::done;
  double train_seconds_here = 0;             // of this run's steps
  std::optional<double> train_seconds = {};  // with those of the runs before it
};

struct Evaluation {
  std::optional<Accuracy> accuracy;  // nothing: this replica does not know
  bool stopped = false;              // it was asked to stop before all was evaluated
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

class Trainer {
 public:
  struct Parts {
    std::function<double(double learning_rate)> step;                 // one update; gives the loss
    std::function<Evaluation(const std::stop_token& stop)> evaluate;  // collective, also about stopping
    std::function<void(const TrainingProgress&)> save = {};           // collective: a checkpoint
    GradientSync* sync = nullptr;                                     // by which replicas end together
    std::function<bool(bool here)> agree = {};     // collective: whether it is true for the first replica
    std::function<double(double here)> mean = {};  // collective: over all replicas
    std::vector<TrainerObserver*> observers = {};
  };
  Trainer(Parts parts, TrainerOptions options);

  // Ends after all steps (where none is left: after an evaluation), after an epoch with the accuracy asked for, as the
  // first replica knows it, or when asked to stop; with a checkpoint each time. Replicas in lock step end together: the
  // wish of any one goes with the gradients of its next step and ends all after that, or ends the evaluation that it
  // comes in. Others end each by its own wish, after the step. Error(failed) if the loss is not finite.
  TrainingEnd run(const std::stop_token& stop = {});

  std::int64_t steps() const { return steps_; }

 private:
  bool is_asked_to_stop(const std::stop_token& stop);
  bool goes_at_own_pace() const { return parts_.sync != nullptr && !parts_.sync->is_lock_step(); }
  bool has_another_ended() const;
  TrainingEnd evaluate_only(const std::stop_token& stop);
  void run_step();
  bool is_epoch_complete() const;
  double mean_of_all(double here) const { return parts_.mean ? parts_.mean(here) : here; }
  std::optional<double> seconds_in_all() const;
  TrainingEnd end_epoch(const std::stop_token& stop);
  void save();
  void tell(const std::function<void(TrainerObserver&)>& what);
  double epochs_at(std::int64_t step) const;

  Parts parts_;
  TrainerOptions options_;
  std::int64_t steps_;  // of the whole training
  std::int64_t step_;   // done
  std::int64_t saved_;  // the step of the newest checkpoint
  double seconds_here_ = 0;
  EpochSums epoch_;
};

}  // namespace trireme::train
