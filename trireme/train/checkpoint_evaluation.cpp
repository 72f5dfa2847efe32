#include "trireme/train/checkpoint_evaluation.hpp"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/train/memory_check.hpp"
#include "trireme/train/same_options.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

StepConfig resolve(StepOptions options, const TrainingState& state, int workers) {
  options.model = state.model;
  options.num_classes = state.classes;
  options.forward_only = true;
  StepConfig config = resolve(options, {.workers = workers});
  if (const auto trained_on = train::trained_on(state.others)) {
    config.data.preprocessing.complete_with(trained_on->preprocessing);
  }
  config.data.set_threads(config.on_gpu());
  return config;
}

}  // namespace

CheckpointEvaluation::CheckpointEvaluation(const EvaluationOptions& options, comm::Communicator& workers)
    : workers_(workers),
      allow_other_data_(options.allow_other_data),
      checkpoint_(open_checkpoint(options.checkpoint)),
      config_(resolve(options.step, checkpoint_->state(), workers.size())) {
  if (!config_.data.is_real()) bad_input("eval needs --data-dir");
  if (workers_.size() > 1) {
    workers_.set_timeout(comm::Communicator::kUnevenTimeout);
    Json same = to_json(config_);
    same["step of the checkpoint"] = checkpoint_->state().step;
    check_same_options(workers_, same);
  }
  Network model = find_model(config_.options.model);
  model.classes = config_.num_classes;
  data_ = open_evaluation_data(config_.data, model, config_.batch_size);
  data_.pipeline.rank = workers_.rank();
  data_.pipeline.ranks = workers_.size();
  check_data();
  check_memory();
  choose_gpu(config_, workers_);
  share_cores(config_, workers_, warnings_);
  if (config_.options.bind) {  // compute is about to be pinned, and new threads inherit their creator's affinity
    data_.pipeline.start_thread = [all = perf::usable_processors()] { std::ignore = perf::limit_thread(all); };
  }
  perf::apply(perf::plan_threads(config_.intra_threads, 1, config_.options.bind));
  make_evaluator();
  checkpoint_->restore_values(evaluator_->variables(), options.average);
}

void CheckpointEvaluation::check_data() const {
  if (workers_.size() > 1) check_same_data(workers_, config_.data.dir, data_.dataset->size(), data_.images.hash);
  if (data_.dataset->info().classes > config_.num_classes) {
    bad_input("--data-dir {}: its images have {} classes, and the network of {} has {}", config_.data.dir,
              data_.dataset->info().classes, checkpoint_->path(), config_.num_classes);
  }
  if (allow_other_data_) return;
  std::string other;
  if (const auto trained_on = train::trained_on(checkpoint_->state().others)) {
    other = difference_in_kind(*trained_on, train::trained_on(*data_.dataset, data_.images, {}));
  } else if (find_model(config_.options.model).channels == 1 && data_.images.channels == 3) {  // an older version
    other = "grey images, but these are coloured";
  }
  if (other.empty()) return;
  bad_input("--data-dir {}: {} was trained on {}; --allow-other-data evaluates it anyway", config_.data.dir,
            checkpoint_->path(), other);
}

void CheckpointEvaluation::check_memory() {
  if (config_.on_gpu()) return;
  for (std::string& warning : train::check_memory({.step = config_}, host_memories(workers_)))
    warnings_.push_back(std::move(warning));
}

// The first worker times kernels and sends the timings to the others.
void CheckpointEvaluation::make_evaluator() {
  const TuningOptions tuning = tuning_options(config_, perf::read_machine());
  backend_ = make_backend(config_.backend, tuning);
  const auto make = [&] {
    evaluator_ = std::make_unique<Evaluator>(Evaluator::Options{.model = config_.options.model,
                                                                .classes = config_.num_classes,
                                                                .batch_size = config_.batch_size,
                                                                .session = {.compile = compile_options(config_)}},
                                             *backend_);
  };
  if (workers_.rank() == 0) make();
  if (workers_.size() > 1) {
    workers_.set_context("waiting for rank 0 to time kernels");
    const std::string timings = comm::broadcast_text(workers_, tuning.cache->text());
    if (workers_.rank() > 0) tuning.cache->merge(timings);
  }
  if (workers_.rank() > 0) make();
  if (const std::string problem = keep_timings(*tuning.cache); !problem.empty()) warnings_.push_back(problem);
}

std::optional<Accuracy> CheckpointEvaluation::run(const std::stop_token& stop,
                                                  const Evaluator::OnProgress& on_progress) {
  data::Pipeline pipeline(data_.dataset, data_.pipeline);
  const std::optional<Accuracy> counted = evaluator_->run(pipeline, stop, on_progress);
  if (workers_.size() == 1) return added_up({&counted, 1}).accuracy;
  workers_.set_context("adding up the evaluation");
  return added_up(comm::all_gather_value(workers_, counted)).accuracy;
}

std::int64_t CheckpointEvaluation::samples() const {
  const std::int64_t all = data_.dataset->size(), batch = config_.batch_size, round = batch * workers_.size();
  const std::int64_t rest = all % round - workers_.rank() * batch;
  return all / round * batch + std::clamp<std::int64_t>(rest, 0, batch);
}

}  // namespace trireme::train
