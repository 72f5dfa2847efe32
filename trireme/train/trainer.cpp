#include "trireme/train/trainer.hpp"

#include <chrono>
#include <cmath>
#include <numeric>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/membership_log.hpp"
#include "trireme/train/stage_tensors.hpp"
#include "trireme/train/step_trace.hpp"
#include "trireme/train/training_config.hpp"
#include "trireme/train/weight_averages.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

// Tracing starts after this many updates, or half of them if there are fewer: the first ones are atypical.
constexpr std::int64_t kStepsBeforeTrace = 10;

}  // namespace

std::string_view name_of_loss(double loss) { return std::isnan(loss) ? "not a number (NaN)" : "infinite"; }

TrainingEnd Trainer::run(std::vector<TrainerObserver*> observers, const std::stop_token& stop) {
  observers_ = std::move(observers);
  traced_from_ = std::min(kStepsBeforeTrace, (steps() - first_.step) / 2);
  const TrainingEnd end = run_steps(stop);
  const EndReport report{.end = end, .train_seconds_here = seconds_here_, .train_seconds = seconds_in_all()};
  tell([&report](TrainerObserver& observer) { observer.on_end(report); });
  finish();
  return end;
}

TrainingEnd Trainer::run_steps(const std::stop_token& stop) {
  if (step_ >= steps()) {
    const Evaluation evaluation = evaluate(stop);
    tell([&](TrainerObserver& observer) { observer.on_nothing_left(step_, evaluation.accuracy); });
    return evaluation.stopped ? TrainingEnd::interrupted : TrainingEnd::done;
  }
  while (step_ < steps()) {
    if (is_asked_to_stop(stop)) {
      save();
      return TrainingEnd::interrupted;
    }
    // If replicas train at their own pace, the one that evaluates tells the others when the target is reached.
    if (sync() != nullptr && sync()->end_was_called()) return TrainingEnd::reached_target;
    run_step();
    if (step_ == steps() || is_epoch_complete()) {
      const TrainingEnd end = end_epoch(stop);
      if (end != TrainingEnd::done) return end;
    } else if (config_->checkpoint_every > 0 && step_ % config_->checkpoint_every == 0) {
      save();
    }
  }
  return TrainingEnd::done;
}

// Collective.
void Trainer::finish() {
  comm::Communicator& workers = worker_->workers();
  trace_->set_recording(false);
  workers.set_timeout(comm::Communicator::kUnevenTimeout);
  if (sync() != nullptr) sync()->rest();
  finish_checkpoints();
  workers.set_context("waiting for all workers to end");
  worker_->leave_lost_behind();
  const std::vector<std::int64_t> bad(bad_evaluated_.begin(), bad_evaluated_.end());
  bad_validation_records_ = count_different(worker_->workers(), bad);  // waits for all workers
  bad_records_ = worker_->input()->count_bad_records(worker_->workers()) + bad_validation_records_;
  if (worker_->in_lock_step() && worker_->servers() == nullptr) {
    worker_->replicas()->check_agreement(worker_->step().session());
  }
  worker_->judge_timings();
  if (sync() != nullptr) sync()->leave();
  if (membership_ && step_ == steps()) membership_->end(step_, hash());
}

void Trainer::run_step() {
  const auto start = SteadyClock::now();
  epochs_before_ = epochs_done();
  missing_images_ += config_->samples_per_update() - samples_per_update();
  StepReport report = run_update(learning_rate());
  report.seconds = seconds_since(start);
  report.step = ++step_;
  report.steps = steps();
  report.epoch = epochs_done();
  const std::optional<double> of_all = worker_->loss_of_all();
  const double loss = of_all ? *of_all / config_->gradients.accumulate : report.loss;
  if (!std::isfinite(loss)) {
    fail(ErrorKind::failed,
         "the loss is {} in step {} at a learning rate of {}; try a lower --init-learning-rate, some "
         "--num-learning-rate-warmup-epochs or --clip-norm, starting from the last checkpoint",
         name_of_loss(loss), step_, report.learning_rate);
  }
  ++epoch_.steps;
  epoch_.loss += loss;
  epoch_.seconds += report.seconds;
  last_rate_ = report.learning_rate;
  seconds_here_ += report.seconds;
  const std::int64_t check = config_->step.distribution.check_replicas;
  if (worker_->in_lock_step() && check > 0 && step_ % check == 0) {
    worker_->replicas()->check_agreement(worker_->step().session());
  }
  tell([&](TrainerObserver& observer) { observer.on_step(report); });
}

// Loss and accuracy are means over the runs of an update.
StepReport Trainer::run_update(double learning_rate) {
  trace_->set_recording(updates_ >= traced_from_ && updates_ < traced_from_ + config_->step.options.trace_steps);
  const perf::ScopedSpan span = trace_->step(++updates_);
  const int runs = config_->gradients.accumulate;
  StepReport report{.learning_rate = learning_rate};
  for (int run = 0; run < runs; ++run) {
    worker_->set_run(run);
    report.loss += worker_->run_step(learning_rate);
    if (const auto accuracy = worker_->accuracy()) report.accuracy = report.accuracy.value_or(0) + *accuracy / runs;
    seconds_.input_wait += worker_->input_seconds();
  }
  if (averages_) {
    if (worker_->replicas() != nullptr) worker_->replicas()->sync().settle();
    averages_->update();
  }
  add_seconds();
  worker_->end_update(runs);
  if (membership_) membership_->note(updates_ - 1, worker_->team());
  report.loss /= runs;
  return report;
}

void Trainer::add_seconds() {
  worker_->count_step();
  if (worker_->replicas() == nullptr) return;
  const Executable::ExchangeTimes& exchange = worker_->step().executable().exchange_times();
  seconds_.update += exchange.update;
  seconds_.exposed += exchange.wait + worker_->bubble_seconds();
  for (const double each : worker_->replicas()->sync().communication_seconds()) seconds_.communication += each;
}

TrainingEnd Trainer::end_epoch(const std::stop_token& stop) {
  const bool is_last = step_ == steps();
  const auto epoch = static_cast<std::int64_t>(std::ceil(epochs_before_ + 1e-9));
  const EpochSums sums = epoch_;
  const auto steps = static_cast<double>(sums.steps);
  const double loss = mean_of_all(sums.loss) / steps;
  // The last epoch may be partial; a run with more epochs continues it.
  const std::int64_t images = sums.steps * config_->samples_per_update() - missing_images_;
  missing_images_ = 0;
  if (is_epoch_complete()) epoch_ = {};
  const bool is_evaluated = is_last || (config_->evaluate_every > 0 && epoch % config_->evaluate_every == 0);
  // Save what may reach the target: if others keep training meanwhile, this state does not come again.
  const bool is_candidate = is_evaluated && config_->target_accuracy > 0 && goes_at_own_pace();
  const bool is_due = config_->checkpoint_every == 0 || step_ % config_->checkpoint_every == 0;
  if (is_last || is_due || is_candidate) save();
  const auto start = SteadyClock::now();
  const Evaluation evaluation = is_evaluated ? evaluate(stop) : Evaluation();
  const double evaluation_seconds = seconds_since(start);
  tell([&](TrainerObserver& observer) {
    observer.on_epoch({.epoch = epoch,
                       .step = step_,
                       .loss = loss,
                       .learning_rate = last_rate_,
                       .images_per_second = static_cast<double>(images) / sums.seconds,
                       .train_seconds = sums.seconds,
                       .evaluation_seconds = evaluation_seconds,
                       .accuracy = evaluation.accuracy});
  });
  // The other workers of an elastic job have not evaluated: they learn of the request in the next step.
  if (evaluation.stopped && (is_last || !is_elastic())) {
    save();
    return TrainingEnd::interrupted;
  }
  if (config_->target_accuracy <= 0) return TrainingEnd::done;
  const std::optional<Accuracy>& accuracy = evaluation.accuracy;
  const bool reached_here = accuracy && accuracy->top1_share() >= config_->target_accuracy;
  const bool reached = agrees_with_first(reached_here);
  if (!reached) return TrainingEnd::done;
  save();
  if (goes_at_own_pace()) sync()->call_end();
  return TrainingEnd::reached_target;
}

// Running statistics are per worker: the first worker's count, as in a checkpoint, or the mean of a stage's workers. A
// worker asked to stop stops counting but completes the collective calls.
Evaluation Trainer::evaluate(const std::stop_token& stop) {
  if (config_->evaluates() == EvaluateOn::nobody) return {};
  comm::Communicator& workers = worker_->workers();
  parallel::Replicas* replicas = worker_->replicas();
  VariableStore& store = worker_->step().session().variables();
  const bool together = worker_->in_lock_step() && workers.size() > 1 && !is_elastic();
  if (replicas != nullptr) replicas->sync().settle();
  if (workers.rank() > 0) worker_->expect_delay();
  if (!together && workers.rank() > 0) return {};
  if (replicas != nullptr && !together) replicas->sync().rest();  // the others keep training
  std::vector<NamedTensor> of_stages;
  if (pipeline().is_used()) {
    replicas->average_untrained(worker_->step().session());
    for (const NodeId id : store.all()) of_stages.push_back({store.node(id).name, store.get(id)});
    of_stages = gather_tensors(workers, pipeline(), std::move(of_stages));
  } else if (together) {
    workers.set_context("running statistics");
    const std::span<std::byte> own = store.untrained_arena();
    comm::broadcast(workers, own);
    store.put(own);
    if (averages_) comm::broadcast(workers, averages_->arena().last(own.size()));
  }
  std::optional<Accuracy> counted = Accuracy();
  if (evaluator_) {
    if (averages_) {
      evaluator_->load([&](const Node& variable) { return averages_->get(store.find(variable.name)); });
    } else if (pipeline().is_used()) {
      std::map<std::string, const HostTensor*> by_name;
      for (const NamedTensor& tensor : of_stages) by_name[tensor.name] = &tensor.value;
      evaluator_->load([&](const Node& variable) { return *by_name.at(variable.name); });
    } else {
      evaluator_->load(store);
    }
    data::Pipeline images(evaluation_->dataset, evaluation_->pipeline);
    counted = evaluator_->run(images, stop);
    for (const std::int64_t index : images.bad_samples()) bad_evaluated_.insert(index);
  }
  if (!together) return added_up({&counted, 1});
  const auto timeout = workers.timeout();
  workers.set_timeout(comm::Communicator::kUnevenTimeout);
  workers.set_context("adding up the evaluation");
  const std::vector<std::optional<Accuracy>> all = comm::all_gather_value(workers, counted);
  workers.set_timeout(timeout);
  return added_up(all);
}

// The loss is over all replicas: a resumed run may have another number of them.
void Trainer::save() {
  if (config_->checkpoint_dir.empty() || saved_ == step_) return;
  EpochSums epoch = epoch_;
  if (epoch.steps > 0) epoch.loss = mean_of_all(epoch.loss);
  write_checkpoint({.step = step_, .train_seconds = seconds_in_all(), .epoch = epoch});
  saved_ = step_;
}

// Only the first worker writes: it has everything, or gets it from the servers or other workers.
void Trainer::write_checkpoint(const TrainingProgress& progress) {
  const bool has_parts = pipeline().is_used() || config_->step.distribution.shard_optimizer;
  if (!checkpoints_ && !has_parts) return;
  if (parallel::Replicas* replicas = worker_->replicas(); replicas != nullptr) {
    replicas->sync().settle();
    if (!worker_->in_lock_step()) replicas->restore_values(worker_->step().session());  // as recent as the state
    replicas->sync().pull_state();
    if (pipeline().is_used()) replicas->average_untrained(worker_->step().session());
  }
  if (!checkpoints_ && !pipeline().is_used()) return;
  const auto checkpoint = std::make_shared<Checkpoint>(take_checkpoint(
      worker_->step().session().variables(), {.model = config_->step.options.model,
                                              .classes = config_->step.num_classes,
                                              .seed = config_->step.seed(),
                                              .step = progress.step,
                                              .samples = worker_->samples().next(),
                                              .leftover = worker_->samples().leftover(),
                                              .global_batch_size = config_->samples_per_update(),
                                              .optimizer = std::string(op::to_string(config_->step.optimizer.kind)),
                                              .train_seconds = progress.train_seconds,
                                              .epoch = progress.epoch,
                                              .others = to_metadata(worker_->input()->trained_on())}));
  if (sync() != nullptr) sync()->drop_state();
  if (pipeline().is_used()) {
    checkpoint->tensors = gather_tensors(worker_->workers(), pipeline(), std::move(checkpoint->tensors));
    if (!checkpoints_) return;
  }
  if (averages_) averages_->add_to(*checkpoint);
  last_saved_ = checkpoint;
  try {
    checkpoints_->save(checkpoint);
  } catch (const std::exception& error) {  // the previous checkpoint and the trained values remain
    log_line(fmt::format("warning: a checkpoint was lost: {}; training continues", error.what()));
  }
}

// Tries the last one twice: there may be room by now.
void Trainer::finish_checkpoints() {
  if (!checkpoints_) return;
  try {
    checkpoints_->finish();
  } catch (const std::exception& error) {
    log_line(fmt::format("warning: {}; trying once more", error.what()));
    if (last_saved_) checkpoints_->save(last_saved_);
    try {
      checkpoints_->finish();
    } catch (const std::exception& again) {
      checkpoint_problem_ = again.what();
    }
  }
}

std::optional<LossScaleState> Trainer::loss_scale() const { return worker_->step().loss_scale(); }

std::int64_t Trainer::samples() const { return worker_->input()->samples(); }

std::int64_t Trainer::evaluated_samples() const { return evaluation_ ? evaluation_->dataset->size() : 0; }

std::string Trainer::resumed_from() const { return resumed_ ? resumed_->path() : ""; }

std::string Trainer::last_checkpoint() const { return checkpoints_ ? checkpoints_->last_path() : ""; }

std::string Trainer::evaluation_preprocessing() const {
  return evaluation_ ? data::describe(evaluation_->pipeline.preprocessing) : "";
}

std::int64_t Trainer::steps() const {
  const double samples_in_all = config_->epochs * static_cast<double>(samples());
  const double left = samples_in_all - static_cast<double>(worker_->samples().used());
  return step_ + static_cast<std::int64_t>(std::ceil(left / static_cast<double>(samples_per_update()) - 1e-9));
}

std::int64_t Trainer::samples_per_update() const {
  return std::llround(worker_->share_of_workers() * static_cast<double>(config_->samples_per_update()));
}

double Trainer::epochs_done() const {
  return static_cast<double>(worker_->samples().done_before()) / static_cast<double>(samples());
}

// By the samples that are used, for as many workers as there are.
double Trainer::learning_rate() const {
  const double steps =
      static_cast<double>(worker_->samples().done_before()) / static_cast<double>(config_->samples_per_update());
  return config_->step.schedule.at(steps) * worker_->share_of_workers();
}

std::uint64_t Trainer::hash() const { return hash_bytes(worker_->step().session().variables().value_arena()); }

double Trainer::first_epoch() const {
  return static_cast<double>(first_samples_->done_before()) / static_cast<double>(samples());
}

std::int64_t Trainer::unknown_steps() const {
  const std::int64_t batch = config_->samples_per_update(), done = first_.step * batch;
  if (first_samples_->used() != done) return 0;  // of an elastic run: old ones were not
  const std::int64_t begin = (done / samples() * samples() + batch - 1) / batch;  // first step of the epoch, from 0
  return first_.step - begin - first_.epoch.steps;
}

bool Trainer::is_epoch_complete() const { return std::floor(epochs_done()) > std::floor(epochs_before_); }

std::optional<double> Trainer::seconds_in_all() const {
  if (!first_.train_seconds) return std::nullopt;
  return *first_.train_seconds + seconds_here_;
}

const PipelineConfig& Trainer::pipeline() const { return config_->step.distribution.pipeline; }

parallel::GradientSync* Trainer::sync() const {
  return worker_->replicas() != nullptr ? &worker_->replicas()->sync() : nullptr;
}

bool Trainer::goes_at_own_pace() const { return sync() != nullptr && !sync()->is_lock_step(); }

bool Trainer::is_elastic() const { return worker_->loss_of_all().has_value(); }

double Trainer::mean_of_all(double here) const {
  if (!worker_->in_lock_step() || is_elastic()) return here;  // an elastic one has it from the steps
  worker_->workers().set_context("the mean loss of the epoch");
  const std::vector<double> all = comm::all_gather_value(worker_->workers(), here);
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

bool Trainer::agrees_with_first(bool here) const {
  if (!worker_->in_lock_step()) return here;
  worker_->workers().set_context("whether the accuracy is good enough");
  return comm::all_gather_value(worker_->workers(), static_cast<char>(here))[0] != 0;
}

// The request travels with the gradients of the next step; all know it after that.
bool Trainer::is_asked_to_stop(const std::stop_token& stop) {
  const bool wish = stop.stop_requested();
  if (sync() == nullptr || !sync()->is_lock_step()) return wish;
  const bool agreed = step_ > first_.step && sync()->agreed() > 0;
  sync()->set_vote(wish ? 1.0f : 0.0f);
  return agreed;
}

// An observer's failure (such as a full disk) must not end the training.
void Trainer::tell(const std::function<void(TrainerObserver&)>& what) {
  for (TrainerObserver* observer : observers_) {
    try {
      what(*observer);
    } catch (const std::exception& error) {
      log_line(fmt::format("warning: {}; training continues", error.what()));
    }
  }
}

}  // namespace trireme::train
