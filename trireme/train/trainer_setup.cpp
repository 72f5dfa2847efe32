// Trainer setup before the first step: the checkpoint to resume from, the worker, and the evaluator.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/data/augmentations.hpp"
#include "trireme/train/checkpoint.hpp"
#include "trireme/train/evaluator.hpp"
#include "trireme/train/job.hpp"
#include "trireme/train/membership_log.hpp"
#include "trireme/train/same_options.hpp"
#include "trireme/train/stage_tensors.hpp"
#include "trireme/train/step_trace.hpp"
#include "trireme/train/trainer.hpp"
#include "trireme/train/training_config.hpp"
#include "trireme/train/weight_averages.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

// The programs of an evaluation, to know their memory.
std::vector<StepConfig> evaluation_programs(const TrainingConfig& config) {
  if (config.evaluates() == EvaluateOn::nobody) return {};
  StepConfig program = config.step;
  program.options.forward_only = true;
  program.batch_size = config.evaluation_batch();
  program.recompute = Recompute::none;
  program.data.cache_bytes = 0;
  return {program};
}

TrainingOptions with_network(const Network& network, TrainingOptions options) {
  set_network(network);
  options.step.model = network.name;
  return options;
}

}  // namespace

Trainer::Trainer(Job& job, const TrainingOptions& options) : Trainer(job, resolve(options, job.size())) {}

Trainer::Trainer(Job& job, const TrainingConfig& config)
    : Trainer(config, job.group(config.step.distribution.is_elastic())) {}

Trainer::Trainer(Job& job, const Network& network, const TrainingOptions& options)
    : Trainer(job, with_network(network, options)) {}

Trainer::Trainer(const TrainingConfig& config, const ProcessGroup& group, const Options& options)
    : config_(std::make_unique<TrainingConfig>(config)),
      first_samples_(std::make_unique<const SampleLedger>()),
      trace_(std::make_unique<StepTrace>(options.recorder)) {
  if (group.workers.size() > 1) {
    Json same = to_json(*config_);
    if (group.workers.protocol() == "local") same.erase("num_intra_threads");  // a replay's are those of each worker
    check_same_options(group.workers, same);
  }
  if (!config_->checkpoint_dir.empty()) open_checkpoint(group.workers);
  Worker::Options own{.on_tuning = options.on_tuning, .recorder = options.recorder};
  own.on_data = [this](const DataInput& input) { check_data(input); };
  if (pipeline().is_used() || pipeline().is_automatic ? first_.step > 0 : resumed_ != nullptr) {
    own.restore = [this, &group](Session& session) { restore(session, group.workers); };
  }
  own.samples = *first_samples_;
  own.memory = {.beside = evaluation_programs(*config_),
                .beside_all = config_->evaluates() == EvaluateOn::all,
                .saves = !config_->checkpoint_dir.empty()};
  worker_ = std::make_unique<Worker>(config_->step, group, own);
  StepConfig& step = config_->step;
  step.schedule.steps_per_epoch = static_cast<double>(samples()) / static_cast<double>(config_->samples_per_update());
  if (config_->reference_batch > 0) {
    step.schedule.scale = linear_scaling(config_->samples_per_update(), config_->reference_batch);
  }
  if (config_->gradients.changes_step()) prepare_gradients();
  if (config_->average_decay > 0) {
    averages_ = std::make_unique<WeightAverages>(worker_->step().session().variables(), config_->average_decay);
    if (resumed_) averages_->restore(*resumed_);
    if (first_.step > 0) comm::broadcast(worker_->workers(), averages_->arena());
  }
  if (config_->evaluates() != EvaluateOn::nobody) prepare_evaluation();
  step_ = saved_ = first_.step;
  epoch_ = first_.epoch;
  if (is_elastic()) open_membership_log(options.membership_log, config);
}

Trainer::~Trainer() = default;

// The nodes and the numbers of threads decide the order of sums.
void Trainer::open_membership_log(const std::string& path, const TrainingConfig& config) {
  comm::Communicator& workers = worker_->workers();
  workers.set_context("comparing the numbers of threads");
  MembershipHeader header;
  header.first_step = first_.step;
  header.threads = comm::all_gather_value(workers, config_->step.intra_threads);
  header.options = options_for_replay(config);
  for (const comm::Member& member : workers.members()) header.nodes.push_back(member.node);
  if (!path.empty() && workers.rank() == 0) membership_ = std::make_unique<MembershipLog>(path, header);
}

// Only the first worker has the file.
void Trainer::restore(Session& session, comm::Communicator& workers) const {
  VariableStore& store = session.variables();
  if (!pipeline().is_used()) return resumed_->restore(store);
  std::vector<std::pair<std::string, TensorType>> wanted;
  for (const auto& [name, value] : take_checkpoint(store, {}).tensors) wanted.emplace_back(name, value.type());
  const std::vector<NamedTensor> given =
      give_out_tensors(workers, wanted, [this](const std::string& name) { return resumed_->tensors().read(name); });
  auto next = given.begin();
  for (const NodeId id : store.all()) {
    store.set(id, (next++)->value);
    for (int index = 0; index < store.state_count(id); ++index) store.set_state(id, index, (next++)->value);
  }
  store.step = static_cast<std::uint64_t>(first_.step);
}

// The first worker looks, and tells the others where to resume.
void Trainer::open_checkpoint(comm::Communicator& workers) {
  nlohmann::json found{{"state", Metadata()}, {"error", ""}};
  if (workers.rank() == 0) {
    try {
      resumed_ = open_latest_checkpoint(config_->checkpoint_dir);
      if (resumed_ && !config_->resume) {
        bad_input(
            "--checkpoint-dir {}: it already has checkpoints; continue from the last one with --resume, or give "
            "another folder",
            config_->checkpoint_dir);
      }
      if (resumed_) {
        check_is_ours(resumed_->state());
        found["state"] = to_metadata(resumed_->state());
      }
      checkpoints_ =
          std::make_unique<CheckpointWriter>(config_->checkpoint_dir, static_cast<int>(config_->keep_checkpoints));
    } catch (const Error& error) {
      if (workers.size() == 1) throw;
      found["error"] = error.what();
    }
  }
  workers.set_context("looking for checkpoints");
  found = nlohmann::json::parse(comm::broadcast_text(workers, found.dump()));
  if (const std::string error = found["error"]; !error.empty()) bad_input("{}", error);
  if (found["state"].empty()) return;
  MetadataReader metadata("the first worker's checkpoint", found["state"].get<Metadata>());
  const TrainingState state = read_state(metadata);
  first_samples_ = std::make_unique<const SampleLedger>(state.samples, state.leftover);
  first_ = {.step = state.step, .train_seconds = state.train_seconds, .epoch = state.epoch};
  go_on_with(state.classes, state.others);
}

// Options not given are taken from the checkpoint; given ones must match it unless other data is allowed.
void Trainer::go_on_with(std::int64_t classes, const Metadata& metadata) {
  StepConfig& step = config_->step;
  if (step.num_classes == 0) step.num_classes = classes;
  if (auto found = trained_on(metadata)) trained_on_ = std::make_unique<const TrainedOn>(*std::move(found));
  if (!trained_on_) return;
  step.data.preprocessing.complete_with(trained_on_->preprocessing);
  const std::vector<std::string> known = data::augmentation_names();
  for (const std::string& name : step.data.preprocessing.augment->others) {
    if (std::ranges::find(known, name) != known.end()) continue;
    bad_input(
        "{}: this training used --augment {}, but this program has no augmentation '{}'; resume with the program that "
        "adds it, or give another --augment with --allow-other-data",
        config_->checkpoint_dir, data::to_string(*trained_on_->preprocessing.augment), name);
  }
  if (config_->allow_other_data || step.data.preprocessing == trained_on_->preprocessing) return;
  const data::PreprocessingOptions &was = trained_on_->preprocessing, &now = step.data.preprocessing;
  bad_input(
      "{}: this training used --crop {} --eval-crop {} --augment {} --mean {} --std {}, but now it has --crop {} "
      "--eval-crop {} --augment {} --mean {} --std {}; leave them out to continue as before, or start in another "
      "folder",
      config_->checkpoint_dir, data::to_string(*was.crop), data::to_string(*was.eval_crop),
      data::to_string(*was.augment), data::to_string(was.mean), data::to_string(was.deviation),
      data::to_string(*now.crop), data::to_string(*now.eval_crop), data::to_string(*now.augment),
      data::to_string(now.mean), data::to_string(now.deviation));
}

void Trainer::check_data(const DataInput& input) const {
  std::string other;
  if (trained_on_ && !config_->allow_other_data) {
    other = difference_in_training(*trained_on_, input.trained_on());
  }
  if (!other.empty()) {
    bad_input(
        "--data-dir {} is not the data set of the checkpoint in {}, which was trained on {}; give that one, or "
        "--allow-other-data to continue with this one",
        config_->step.data.dir, config_->checkpoint_dir, other);
  }
  if (first_.step > 0) return;  // a started training may continue
  if (const std::int64_t update = config_->samples_per_update(); update > input.samples()) {
    bad_input("--accumulate {}: an update takes {} images, and {} has {}; --accumulate {} at most",
              config_->gradients.accumulate, update, config_->step.data.dir, input.samples(),
              input.samples() / config_->step.global_batch_size());
  }
}

void Trainer::check_is_ours(const TrainingState& state) const {
  const auto refuse = [&](const char* what, const auto& theirs, const auto& ours) {
    bad_input("{}: this training used {} {}, but now it is {}; continue with the same, or start in another folder",
              resumed_->path(), what, theirs, ours);
  };
  if (state.model != config_->step.options.model) refuse("--model", state.model, config_->step.options.model);
  if (state.seed != config_->step.seed()) refuse("--seed", state.seed, config_->step.seed());
  if (state.global_batch_size != config_->samples_per_update()) {
    refuse("a global batch (workers x batch size x runs) of", state.global_batch_size, config_->samples_per_update());
  }
  const std::string optimizer(op::to_string(config_->step.optimizer.kind));
  const std::int64_t classes = config_->step.num_classes;
  if (classes > 0 && state.classes != classes) refuse("--num-classes", state.classes, classes);
  if (state.optimizer != optimizer) refuse("--optimizer", state.optimizer, optimizer);
}

void Trainer::prepare_gradients() {
  BatchSplit& split = worker_->step().split();
  if (worker_->replicas() != nullptr) {
    worker_->replicas()->exchange_gradients(split, config_->gradients);
  } else {
    split.set_exchange(nullptr, config_->gradients);
  }
}

// Workers that do not evaluate make no evaluator.
void Trainer::prepare_evaluation() {
  const WorkerSetup& setup = worker_->setup();
  const int groups = setup.threads.groups;
  const std::int64_t batch_size = (config_->evaluation_batch() + groups - 1) / groups * groups;
  worker_->compile_in_turn([&] {
    if (takes_part_in_evaluation()) make_evaluator(batch_size);
  });
  evaluation_ = std::make_unique<EvaluationData>(open_evaluation_data(config_->step.data, setup.model, batch_size));
  if (config_->evaluates() == EvaluateOn::all && worker_->in_lock_step() && !pipeline().is_used()) {
    evaluation_->pipeline.rank = worker_->workers().rank();
    evaluation_->pipeline.ranks = worker_->workers().size();
  }
}

void Trainer::make_evaluator(std::int64_t batch_size) {
  const WorkerSetup& setup = worker_->setup();
  SessionOptions session;
  session.compile = compile_options(config_->step);
  session.compile.recompute = Recompute::none;
  session.groups = setup.threads.groups;
  session.start_thread = [threads = setup.threads](int index) { perf::apply(threads, index); };
  evaluator_ = std::make_unique<Evaluator>(Evaluator::Options{.model = config_->step.options.model,
                                                              .classes = config_->step.num_classes,
                                                              .batch_size = batch_size,
                                                              .session = session},
                                           worker_->backend());
}

bool Trainer::takes_part_in_evaluation() const {
  const bool all = config_->evaluates() == EvaluateOn::all && worker_->in_lock_step() && !pipeline().is_used();
  return all || worker_->workers().rank() == 0;
}

}  // namespace trireme::train
