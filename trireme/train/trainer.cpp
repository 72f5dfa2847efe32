#include "trireme/train/trainer.hpp"

#include <chrono>
#include <cmath>

#include "trireme/base/error.hpp"
#include "trireme/base/log_line.hpp"

namespace trireme::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::int64_t steps_of(const TrainerOptions& options) {
  const double samples = options.epochs * static_cast<double>(options.samples_per_epoch);
  return static_cast<std::int64_t>(std::ceil(samples / static_cast<double>(options.samples_per_step) - 1e-9));
}

}  // namespace

std::string_view name_of_loss(double loss) { return std::isnan(loss) ? "not a number (NaN)" : "infinite"; }

Trainer::Trainer(Parts parts, TrainerOptions options)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      steps_(steps_of(options_)),
      step_(options_.first.step),
      saved_(step_),
      epoch_(options_.first.epoch) {}

double Trainer::epochs_at(std::int64_t step) const {
  return static_cast<double>(step * options_.samples_per_step) / static_cast<double>(options_.samples_per_epoch);
}

// What is shown and written beside the training (a full disk under its curves) is no reason to end it.
void Trainer::tell(const std::function<void(TrainerObserver&)>& what) {
  for (TrainerObserver* observer : parts_.observers) {
    try {
      what(*observer);
    } catch (const std::exception& error) {
      log_line(fmt::format("warning: {}; training goes on", error.what()));
    }
  }
}

TrainingEnd Trainer::run(const std::stop_token& stop) {
  TrainingEnd end = step_ < steps_ ? TrainingEnd::done : evaluate_only(stop);
  while (step_ < steps_ && end == TrainingEnd::done) {
    if (is_asked_to_stop(stop)) {
      end = TrainingEnd::interrupted;
      save();
      break;
    }
    if (has_another_ended()) {
      end = TrainingEnd::reached_target;
      break;
    }
    run_step();
    if (step_ == steps_ || is_epoch_complete()) {
      end = end_epoch(stop);
    } else if (options_.checkpoint_every > 0 && step_ % options_.checkpoint_every == 0) {
      save();
    }
  }
  const EndReport report{.end = end, .train_seconds_here = seconds_here_, .train_seconds = seconds_in_all()};
  tell([&report](TrainerObserver& observer) { observer.on_end(report); });
  return end;
}

TrainingEnd Trainer::evaluate_only(const std::stop_token& stop) {
  const Evaluation evaluation = parts_.evaluate(stop);
  tell([&](TrainerObserver& observer) { observer.on_nothing_left(step_, evaluation.accuracy); });
  return evaluation.stopped ? TrainingEnd::interrupted : TrainingEnd::done;
}

std::optional<double> Trainer::seconds_in_all() const {
  if (!options_.first.train_seconds) return std::nullopt;
  return *options_.first.train_seconds + seconds_here_;
}

// The loss is that of all replicas: a run that goes on from here may have more or fewer of them.
void Trainer::save() {
  if (!parts_.save || saved_ == step_) return;
  EpochSums epoch = epoch_;
  if (epoch.steps > 0) epoch.loss = mean_of_all(epoch.loss);
  parts_.save({.step = step_, .train_seconds = seconds_in_all(), .epoch = epoch});
  saved_ = step_;
}

// A wish goes with the gradients of the coming step, and is known to all when that is done.
bool Trainer::is_asked_to_stop(const std::stop_token& stop) {
  const bool wish = stop.stop_requested();
  if (parts_.sync == nullptr || !parts_.sync->is_lock_step()) return wish;
  const bool agreed = step_ > options_.first.step && parts_.sync->agreed() > 0;
  parts_.sync->set_vote(wish ? 1.0f : 0.0f);
  return agreed;
}

// Of replicas that go each at its own pace, the one that evaluates tells the others that it is good enough.
bool Trainer::has_another_ended() const { return parts_.sync != nullptr && parts_.sync->end_was_called(); }

void Trainer::run_step() {
  const double rate = options_.schedule.at(step_);
  const auto start = Clock::now();
  const double loss = parts_.step(rate);
  const double seconds = seconds_since(start);
  ++step_;
  if (!std::isfinite(loss)) {
    fail(ErrorKind::failed,
         "the loss is {} in step {} at a learning rate of {}; try a lower --init-learning-rate, some "
         "--num-learning-rate-warmup-epochs or --clip-norm, from the last checkpoint",
         name_of_loss(loss), step_, rate);
  }
  ++epoch_.steps;
  epoch_.loss += loss;
  epoch_.seconds += seconds;
  seconds_here_ += seconds;
  tell([&](TrainerObserver& observer) {
    observer.on_step({.step = step_,
                      .steps = steps_,
                      .epoch = epochs_at(step_),
                      .loss = loss,
                      .learning_rate = rate,
                      .seconds = seconds});
  });
}

bool Trainer::is_epoch_complete() const { return std::floor(epochs_at(step_)) > std::floor(epochs_at(step_ - 1)); }

TrainingEnd Trainer::end_epoch(const std::stop_token& stop) {
  const bool is_last = step_ == steps_;
  const auto epoch = static_cast<std::int64_t>(std::ceil(epochs_at(step_ - 1) + 1e-9));
  const EpochSums sums = epoch_;
  const auto steps = static_cast<double>(sums.steps);
  const double loss = mean_of_all(sums.loss) / steps;
  // The last one may be a part of an epoch, which a run with more epochs goes on with.
  if (is_epoch_complete()) epoch_ = {};
  const bool is_evaluated = is_last || (options_.evaluate_every > 0 && epoch % options_.evaluate_every == 0);
  // What reaches the target is what is to be kept, and where others go on meanwhile there is no second look at it.
  const bool is_candidate = is_evaluated && options_.target_accuracy > 0 && goes_at_own_pace();
  const bool is_due = options_.checkpoint_every == 0 || step_ % options_.checkpoint_every == 0;
  if (is_last || is_due || is_candidate) save();
  const auto start = Clock::now();
  const Evaluation evaluation = is_evaluated ? parts_.evaluate(stop) : Evaluation();
  const double evaluation_seconds = seconds_since(start);
  tell([&](TrainerObserver& observer) {
    observer.on_epoch({.epoch = epoch,
                       .step = step_,
                       .loss = loss,
                       .learning_rate = options_.schedule.at(step_ - 1),
                       .images_per_second = steps * static_cast<double>(options_.samples_per_step) / sums.seconds,
                       .train_seconds = sums.seconds,
                       .evaluation_seconds = evaluation_seconds,
                       .accuracy = evaluation.accuracy});
  });
  if (evaluation.stopped) {
    save();
    return TrainingEnd::interrupted;
  }
  if (options_.target_accuracy <= 0) return TrainingEnd::done;
  const std::optional<Accuracy>& accuracy = evaluation.accuracy;
  const bool reached_here = accuracy && accuracy->top1_share() >= options_.target_accuracy;
  const bool reached = parts_.agree ? parts_.agree(reached_here) : reached_here;
  if (!reached) return TrainingEnd::done;
  save();
  if (goes_at_own_pace()) parts_.sync->call_end();
  return TrainingEnd::reached_target;
}

}  // namespace trireme::train
