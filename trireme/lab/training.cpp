#include "trireme/lab/training.hpp"

#include <nlohmann/json.hpp>
#include <numeric>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/log_line.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/lab/same_options.hpp"

namespace trireme::lab {
namespace {

// Workers may be busy with evaluation or checkpoints for long.
constexpr auto kUnevenTimeout = std::chrono::hours(24);
// A trace begins after so many updates, or half of them if there are fewer: the first ones are not as the others.
constexpr std::int64_t kStepsBeforeTrace = 10;

std::shared_ptr<comm::Communicator> not_owned(comm::Communicator& communicator) {
  return {std::shared_ptr<void>(), &communicator};
}

}  // namespace

train::Evaluation added_up(std::span<const std::optional<train::Accuracy>> workers) {
  train::Accuracy all;
  for (const std::optional<train::Accuracy>& each : workers) {
    if (!each) return {.accuracy = std::nullopt, .stopped = true};
    all.add(*each);
  }
  if (all.samples == 0 && all.broken > 0) {
    fail(ErrorKind::failed, "none of the {} validation images is good", all.broken);
  }
  return {.accuracy = all};
}

namespace {

// What an evaluation runs, to find out what memory it takes.
std::vector<BenchmarkConfig> evaluation_programs(const TrainingConfig& config) {
  if (config.evaluate_on == EvaluateOn::nobody) return {};
  BenchmarkConfig program = config.step;
  program.forward_only = true;
  program.batch_size = config.eval_batch_size;
  program.recompute = Recompute::none;
  program.data.cache_bytes = 0;
  return {program};
}

// What the first worker tells the others of a checkpoint. Numbers keep all their bits.
nlohmann::json progress_json(const train::TrainingState& state) {
  nlohmann::json json{{"step", state.step},
                      {"samples", state.samples},
                      {"epoch_steps", state.epoch.steps},
                      {"epoch_loss", state.epoch.loss},
                      {"epoch_seconds", state.epoch.seconds}};
  if (state.train_seconds) json["train_seconds"] = *state.train_seconds;
  return json;
}

}  // namespace

EvaluationData open_evaluation_data(const DataConfig& config, const ModelInfo& model, std::int64_t batch_size) {
  EvaluationData evaluation;
  data::OpenOptions open{.name = config.name, .split = data::Split::validation};
  if (config.max_bad_records > 0) open.on_broken_file = say_passed_over;
  evaluation.dataset = data::open_dataset(config.dir, open);
  evaluation.images = data::glimpse(*evaluation.dataset);
  data::PipelineOptions& pipeline = evaluation.pipeline;
  pipeline.batch_size = batch_size;
  pipeline.shuffle = false;
  pipeline.end = evaluation.dataset->size();
  pipeline.classes = static_cast<std::int32_t>(model.classes);
  pipeline.preprocessing = data::preprocessing_for(evaluation.images, static_cast<int>(model.image_size),
                                                   static_cast<int>(model.channels), false, config.preprocessing);
  pipeline.threads = config.threads;
  pipeline.prefetch = config.prefetch;
  pipeline.max_bad_samples = config.max_bad_records;
  pipeline.replace_bad = false;  // each image counts once, or not at all
  // With every evaluation comes a pipeline, and with it the broken ones again.
  pipeline.on_bad_sample = [said = std::make_shared<std::set<std::string>>()](const std::string& problem) {
    if (said->insert(problem).second) say_passed_over(problem);
  };
  return evaluation;
}

Training::Training(const TrainingConfig& config, const Crew& crew, std::function<void()> on_tuning)
    : config_(config), trace_(crew.recorder) {
  if (crew.workers.size() > 1) check_same_options(crew.workers, to_json(config_));
  if (!config_.checkpoint_dir.empty()) open_checkpoint(crew.workers);
  Workplace::Options options{
      .with_servers = crew.with_servers, .on_tuning = std::move(on_tuning), .recorder = crew.recorder};
  options.on_data = [this](const DataInput& input) { check_data(input); };
  if (resumed_) options.restore = [this](Session& session) { resumed_->restore(session.variables()); };
  options.first_sample = first_sample_;
  if (config_.evaluate_on == EvaluateOn::all || crew.workers.size() == 1) options.beside = evaluation_programs(config_);
  place_ = std::make_unique<Workplace>(config_.step, not_owned(crew.workers), options);
  BenchmarkConfig& step = place_->setup().config;
  config_.step.num_classes = step.num_classes;
  config_.step.data.preprocessing = step.data.preprocessing;
  step.schedule.steps_per_epoch = static_cast<double>(samples()) / static_cast<double>(config_.samples_per_update());
  if (config_.reference_batch > 0) {
    step.schedule.scale = linear_scaling(config_.samples_per_update(), config_.reference_batch);
  }
  if (config_.gradients.changes_step()) {
    BatchSplit& split = place_->step().split();
    if (place_->replicas() != nullptr) {
      place_->replicas()->exchange_gradients(split, config_.gradients);
    } else {
      split.set_exchange(nullptr, config_.gradients);
    }
  }
  if (config_.average_decay > 0) {
    averages_ = std::make_unique<train::WeightAverages>(place_->step().session().variables(), config_.average_decay);
    if (resumed_) averages_->restore(*resumed_);
    if (first_.step > 0) comm::broadcast(place_->workers(), averages_->arena());
  }
  if (config_.evaluate_on != EvaluateOn::nobody) prepare_evaluation();
}

Training::~Training() = default;

// The first worker looks, and tells the others where to go on.
void Training::open_checkpoint(comm::Communicator& workers) {
  nlohmann::json found{{"classes", 0}, {"others", train::Metadata()}, {"error", ""}};
  if (workers.rank() == 0) {
    try {
      resumed_ = train::open_latest_checkpoint(config_.checkpoint_dir);
      if (resumed_ && !config_.resume) {
        bad_input(
            "--checkpoint-dir {}: there are checkpoints in it; --resume goes on from the last one, or give another "
            "folder",
            config_.checkpoint_dir);
      }
      if (resumed_) {
        check_is_ours(resumed_->state());
        found.update(progress_json(resumed_->state()));
        found["classes"] = resumed_->state().classes;
        found["others"] = resumed_->state().others;
      }
      checkpoints_ = std::make_unique<train::CheckpointWriter>(config_.checkpoint_dir, config_.keep_checkpoints);
    } catch (const Error& error) {
      if (workers.size() == 1) throw;
      found["error"] = error.what();
    }
  }
  workers.set_context("looking for checkpoints");
  found = nlohmann::json::parse(comm::broadcast_text(workers, found.dump()));
  if (const std::string error = found["error"]; !error.empty()) bad_input("{}", error);
  if (!found.contains("step")) return;
  first_sample_ = found["samples"];
  first_ = {
      .step = found["step"],
      .train_seconds = found.contains("train_seconds") ? std::optional<double>(found["train_seconds"]) : std::nullopt,
      .epoch = {.steps = found["epoch_steps"], .loss = found["epoch_loss"], .seconds = found["epoch_seconds"]}};
  go_on_with(found["classes"], found["others"].get<train::Metadata>());
}

// What was not said is as it was; what was said must be, unless other data are allowed.
void Training::go_on_with(std::int64_t classes, const train::Metadata& metadata) {
  BenchmarkConfig& step = config_.step;
  if (step.num_classes == 0) step.num_classes = classes;
  trained_on_ = train::trained_on(metadata);
  if (!trained_on_) return;
  step.data.preprocessing.complete_with(trained_on_->preprocessing);
  if (config_.allow_other_data || step.data.preprocessing == trained_on_->preprocessing) return;
  const data::PreprocessingOptions &was = trained_on_->preprocessing, &now = step.data.preprocessing;
  bad_input(
      "{}: this training had --crop {} --eval-crop {} --augment {} --mean {} --std {}, and now it is --crop {} "
      "--eval-crop {} --augment {} --mean {} --std {}; leave them out to go on as before, or begin in another folder",
      config_.checkpoint_dir, data::to_string(*was.crop), data::to_string(*was.eval_crop),
      data::to_string(*was.augment), data::to_string(was.mean), data::to_string(was.deviation),
      data::to_string(*now.crop), data::to_string(*now.eval_crop), data::to_string(*now.augment),
      data::to_string(now.mean), data::to_string(now.deviation));
}

void Training::check_data(const DataInput& input) const {
  std::string other;
  if (trained_on_ && !config_.allow_other_data) {
    other = train::difference_in_training(*trained_on_, input.trained_on());
  }
  if (!other.empty()) {
    bad_input(
        "--data-dir {} is not the data set of the checkpoint in {}, which was trained on {}; give that one, or "
        "--allow-other-data to go on with this",
        config_.step.data.dir, config_.checkpoint_dir, other);
  }
  if (first_.step > 0) return;  // what was begun may go on
  if (const std::int64_t update = config_.samples_per_update(); update > input.samples()) {
    bad_input("--accumulate {}: an update takes {} images, and {} has {}; --accumulate {} at most",
              config_.gradients.accumulate, update, config_.step.data.dir, input.samples(),
              input.samples() / config_.step.global_batch_size());
  }
}

double Training::first_epoch() const {
  return static_cast<double>(first_.step * config_.samples_per_update()) / static_cast<double>(samples());
}

std::int64_t Training::unknown_steps() const {
  const std::int64_t batch = config_.samples_per_update(), done = first_.step * batch;
  const std::int64_t begin = (done / samples() * samples() + batch - 1) / batch;  // the epoch's first step, from 0
  return first_.step - begin - first_.epoch.steps;
}

void Training::check_is_ours(const train::TrainingState& state) const {
  const auto refuse = [&](const char* what, const auto& theirs, const auto& ours) {
    bad_input("{}: this training had {} {}, and now it is {}; go on with the same, or begin in another folder",
              resumed_->path(), what, theirs, ours);
  };
  if (state.model != config_.step.model) refuse("--model", state.model, config_.step.model);
  if (state.seed != config_.step.seed) refuse("--seed", state.seed, config_.step.seed);
  if (state.global_batch_size != config_.samples_per_update()) {
    refuse("a global batch (workers x batch size x runs) of", state.global_batch_size, config_.samples_per_update());
  }
  const std::string optimizer(op::to_string(config_.step.optimizer.kind));
  const std::int64_t classes = config_.step.num_classes;
  if (classes > 0 && state.classes != classes) refuse("--num-classes", state.classes, classes);
  if (state.optimizer != optimizer) refuse("--optimizer", state.optimizer, optimizer);
}

// A worker that takes no part has none.
void Training::prepare_evaluation() {
  const BenchmarkSetup& setup = place_->setup();
  const int groups = setup.threads.groups;
  const std::int64_t batch_size = (config_.eval_batch_size + groups - 1) / groups * groups;
  place_->compile_in_turn([&] {
    if (takes_part_in_evaluation()) make_evaluator(batch_size);
  });
  evaluation_ = open_evaluation_data(setup.config.data, setup.model, batch_size);
  if (config_.evaluate_on == EvaluateOn::all && place_->in_lock_step()) {
    evaluation_.pipeline.rank = place_->workers().rank();
    evaluation_.pipeline.ranks = place_->workers().size();
  }
}

void Training::make_evaluator(std::int64_t batch_size) {
  const BenchmarkSetup& setup = place_->setup();
  SessionOptions session;
  session.compile = compile_options(setup.config);
  session.compile.recompute = Recompute::none;
  session.groups = setup.threads.groups;
  session.start_thread = [threads = setup.threads](int index) { perf::apply(threads, index); };
  evaluator_ = std::make_unique<train::Evaluator>(train::Evaluator::Options{.model = setup.config.model,
                                                                            .classes = setup.config.num_classes,
                                                                            .batch_size = batch_size,
                                                                            .session = session},
                                                  place_->backend());
}

train::TrainingEnd Training::run(std::vector<train::TrainerObserver*> observers, const std::stop_token& stop) {
  comm::Communicator& workers = place_->workers();
  train::Trainer::Parts parts;
  parts.step = [this](double rate) { return run_update(rate); };
  parts.evaluate = [this](const std::stop_token& asked) { return evaluate(asked); };
  if (!config_.checkpoint_dir.empty()) parts.save = [this](const auto& progress) { save(progress); };
  parts.observers = std::move(observers);
  if (place_->replicas() != nullptr) parts.sync = &place_->replicas()->sync();
  if (place_->in_lock_step()) {
    parts.agree = [&workers](bool here) {
      workers.set_context("whether the accuracy is good enough");
      return comm::all_gather_value(workers, static_cast<char>(here))[0] != 0;
    };
    parts.mean = [&workers](double here) {
      workers.set_context("the mean loss of the epoch");
      const std::vector<double> all = comm::all_gather_value(workers, here);
      return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
    };
  }
  train::Trainer trainer(std::move(parts), {.samples_per_epoch = samples(),
                                            .samples_per_step = config_.samples_per_update(),
                                            .epochs = config_.epochs,
                                            .schedule = place_->config().schedule,
                                            .evaluate_every = config_.evaluate_every,
                                            .checkpoint_every = config_.checkpoint_every,
                                            .target_accuracy = config_.target_accuracy,
                                            .first = first_});
  traced_from_ = std::min(kStepsBeforeTrace, (trainer.steps() - first_.step) / 2);
  const train::TrainingEnd end = trainer.run(stop);
  trace_.set_recording(false);
  workers.set_timeout(kUnevenTimeout);
  if (place_->replicas() != nullptr) place_->replicas()->sync().rest();
  finish_checkpoints();
  workers.set_context("waiting for all workers to end");
  place_->leave_lost_behind();
  const std::vector<std::int64_t> bad(bad_evaluated_.begin(), bad_evaluated_.end());
  bad_validation_records_ = count_different(place_->workers(), bad);  // which all wait for
  bad_records_ = place_->input()->count_bad_records(place_->workers()) + bad_validation_records_;
  if (place_->replicas() != nullptr) place_->replicas()->sync().leave();
  return end;
}

// The last one is tried twice: there may be room by now.
void Training::finish_checkpoints() {
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

bool Training::is_traced() const {
  return updates_ >= traced_from_ && updates_ < traced_from_ + place_->config().trace_steps;
}

double Training::run_update(double learning_rate) {
  trace_.set_recording(is_traced());
  const perf::ScopedSpan span = trace_.step(++updates_);
  double loss = 0;
  for (int run = 0; run < config_.gradients.accumulate; ++run) {
    place_->step().set_first_sample((run * place_->workers().size() + place_->workers().rank()) *
                                    config_.step.batch_size);
    loss += place_->run_step(learning_rate);
    step_seconds_.input_wait += place_->input_seconds();
  }
  if (averages_) {
    if (place_->replicas() != nullptr) place_->replicas()->sync().settle();
    averages_->update();
  }
  add_step_seconds();
  return loss / config_.gradients.accumulate;
}

void Training::add_step_seconds() {
  if (place_->replicas() == nullptr) return;
  const Executable::ExchangeTimes& exchange = place_->step().executable().exchange_times();
  step_seconds_.update += exchange.update;
  step_seconds_.exposed += exchange.wait;
  for (const double each : place_->replicas()->sync().communication_seconds()) step_seconds_.communication += each;
}

bool Training::takes_part_in_evaluation() const {
  const bool all = config_.evaluate_on == EvaluateOn::all && place_->in_lock_step();
  return all || place_->workers().rank() == 0;
}

// Running statistics are each worker's own: those of the first count, as in a checkpoint. A worker that is asked to
// stop counts no further, but what is done together it does to the end.
train::Evaluation Training::evaluate(const std::stop_token& stop) {
  if (config_.evaluate_on == EvaluateOn::nobody) return {};
  comm::Communicator& workers = place_->workers();
  train::Replicas* replicas = place_->replicas();
  VariableStore& store = place_->step().session().variables();
  const bool together = place_->in_lock_step() && workers.size() > 1;
  if (replicas != nullptr) replicas->sync().settle();
  if (!together && workers.rank() > 0) return {};
  if (replicas != nullptr && !together) replicas->sync().rest();  // the others go on meanwhile
  if (together) {
    workers.set_context("running statistics");
    const std::span<std::byte> own = store.untrained_arena();
    comm::broadcast(workers, own);
    store.put(own);
    if (averages_) comm::broadcast(workers, averages_->arena().last(own.size()));
  }
  std::optional<train::Accuracy> counted = train::Accuracy();
  if (evaluator_) {
    if (averages_) {
      evaluator_->load([&](const Node& variable) { return averages_->get(store.find(variable.name)); });
    } else {
      evaluator_->load(store);
    }
    data::Pipeline pipeline(evaluation_.dataset, evaluation_.pipeline);
    counted = evaluator_->run(pipeline, stop);
    for (const std::int64_t index : pipeline.bad_samples()) bad_evaluated_.insert(index);
  }
  if (!together) return added_up({&counted, 1});
  const auto timeout = workers.timeout();
  workers.set_timeout(kUnevenTimeout);
  workers.set_context("adding up the evaluation");
  const std::vector<std::optional<train::Accuracy>> all = comm::all_gather_value(workers, counted);
  workers.set_timeout(timeout);
  return added_up(all);
}

// Only the first worker writes: it has all there is, or gets it from the servers.
void Training::save(const train::TrainingProgress& progress) {
  if (!checkpoints_) return;
  if (train::Replicas* replicas = place_->replicas(); replicas != nullptr) {
    replicas->sync().settle();
    if (!place_->in_lock_step()) replicas->restore_values(place_->step().session());  // as new as the state
    replicas->sync().pull_state();
  }
  const auto checkpoint = std::make_shared<train::Checkpoint>(train::take_checkpoint(
      place_->step().session().variables(), {.model = config_.step.model,
                                             .classes = place_->config().num_classes,
                                             .seed = config_.step.seed,
                                             .step = progress.step,
                                             .samples = progress.step * config_.samples_per_update(),
                                             .global_batch_size = config_.samples_per_update(),
                                             .optimizer = std::string(op::to_string(config_.step.optimizer.kind)),
                                             .train_seconds = progress.train_seconds,
                                             .epoch = progress.epoch,
                                             .others = train::to_metadata(place_->input()->trained_on())}));
  if (averages_) averages_->add_to(*checkpoint);
  last_saved_ = checkpoint;
  try {
    checkpoints_->save(checkpoint);
  } catch (const std::exception& error) {  // the last one that was written is still there, and so is what is trained
    log_line(fmt::format("warning: a checkpoint was lost: {}; training goes on", error.what()));
  }
}

}  // namespace trireme::lab
