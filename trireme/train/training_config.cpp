#include "trireme/train/training_config.hpp"

#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

void check_at_least(const char* option, double value, double least) {
  if (!(value >= least) || !std::isfinite(value)) bad_input("--{} {}: must be at least {}", option, value, least);
}

EvaluateOn parse_evaluate_on(const std::string& text) {
  if (text == "all") return EvaluateOn::all;
  if (text == "first") return EvaluateOn::first;
  if (text == "none") return EvaluateOn::nobody;
  bad_input("--eval {}: must be one of all (workers), first, none", text);
}

const char* to_string(EvaluateOn on) {
  return on == EvaluateOn::all ? "all" : on == EvaluateOn::first ? "first" : "none";
}

void resolve_gradients(const TrainingOptions& options, TrainingConfig& config) {
  check_at_least("accumulate", static_cast<double>(options.accumulate), 1);
  check_at_least("clip-norm", options.clip_norm, 0);
  config.gradients.accumulate = static_cast<int>(options.accumulate);
  config.gradients.clip_norm = options.clip_norm;
  if (options.lars) {
    if (!(*options.lars > 0)) bad_input("--lars {}: the coefficient must be above 0, such as 0.001", *options.lars);
    // LARS includes weight decay when it scales gradients: the rule must not add it again.
    config.gradients.lars = Lars{*options.lars, config.step.optimizer.weight_decay};
    config.step.optimizer.weight_decay = 0;
  }
  const DistributionConfig& distribution = config.step.distribution;
  if (config.gradients.transforms() && distribution.uses_servers() && !distribution.asynchronous) {
    bad_input(
        "{}: each parameter server has a part of the mean gradient, and its norm needs all of it; take --async, which "
        "clips and scales each worker's gradients, or --variable-update all_reduce",
        options.lars ? "--lars" : "--clip-norm");
  }
  if (!config.gradients.changes_step()) return;
  if (distribution.gpu_sums == GpuSums::always) {
    bad_input(
        "--accumulate, --clip-norm and --lars work on gradients in the host's memory: leave --all-reduce nccl out");
  }
  config.step.distribution.gpu_sums = GpuSums::never;
  if (config.step.batch_split == 0) config.step.batch_split = 1;
}

void resolve_checkpoints(const TrainingOptions& options, TrainingConfig& config) {
  check_at_least("checkpoint-every", static_cast<double>(options.checkpoint_every), 0);
  check_at_least("keep-checkpoints", static_cast<double>(options.keep_checkpoints), 1);
  if (options.checkpoint_dir.empty() && (options.resume || options.checkpoint_every > 0)) {
    bad_input("{} needs --checkpoint-dir", options.resume ? "--resume" : "--checkpoint-every");
  }
  if (options.allow_other_data && !options.resume) bad_input("--allow-other-data is for --resume");
  config.checkpoint_dir = options.checkpoint_dir;
  config.checkpoint_every = options.checkpoint_every;
  config.keep_checkpoints = static_cast<int>(options.keep_checkpoints);
  config.resume = options.resume;
  config.allow_other_data = options.allow_other_data;
}

}  // namespace

TrainingConfig resolve(const TrainingOptions& options, const comm::JobSize& job) {
  TrainingConfig config;
  config.step = resolve(options.step, job);
  if (!config.step.data.is_real()) {
    bad_input("train needs data: give --data-dir, or make some with `trireme data make`; `bench` does without");
  }
  if (config.step.distribution.workers > 1 && config.step.distribution.update == VariableUpdate::independent) {
    bad_input("--variable-update independent: workers that exchange nothing would train a network each");
  }
  if (!(options.epochs > 0) || !std::isfinite(options.epochs))
    bad_input("--epochs {}: must be above 0", options.epochs);
  config.epochs = options.epochs;
  check_at_least("scale-learning-rate", static_cast<double>(options.reference_batch), 0);
  config.reference_batch = options.reference_batch;
  config.step.decays_batch_norm = !options.skip_batch_norm_decay;
  resolve_gradients(options, config);
  if (!(options.average_decay >= 0 && options.average_decay < 1)) {
    bad_input("--average {}: must be at least 0 and below 1, such as 0.999", options.average_decay);
  }
  config.average_decay = options.average_decay;
  config.evaluate_on = parse_evaluate_on(options.evaluate_on);
  check_at_least("display-every", static_cast<double>(options.display_every), 1);
  config.display_every = options.display_every;
  check_at_least("eval-every", static_cast<double>(options.evaluate_every), 0);
  config.evaluate_every = options.evaluate_every;
  config.eval_batch_size = options.eval_batch_size.value_or(config.step.batch_size);
  check_at_least("eval-batch-size", static_cast<double>(config.eval_batch_size), 1);
  if (!(options.target_accuracy >= 0 && options.target_accuracy <= 1)) {
    bad_input("--target-accuracy {}: must be a share from 0 to 1", options.target_accuracy);
  }
  if (options.target_accuracy > 0 && config.evaluate_on == EvaluateOn::nobody) {
    bad_input("--target-accuracy needs an evaluation: leave --eval none out");
  }
  config.target_accuracy = options.target_accuracy;
  resolve_checkpoints(options, config);
  return config;
}

Json to_json(const TrainingConfig& config) {
  Json json = to_json(config.step);
  json["epochs"] = config.epochs;
  json["scale_learning_rate"] = config.reference_batch;
  json["skip_batch_norm_decay"] = !config.step.decays_batch_norm;
  json["accumulate"] = config.gradients.accumulate;
  json["clip_norm"] = config.gradients.clip_norm;
  json["lars"] = config.gradients.lars ? config.gradients.lars->coefficient : 0;
  if (config.gradients.lars) json["weight_decay"] = config.gradients.lars->weight_decay;
  json["average"] = config.average_decay;
  json["display_every"] = config.display_every;
  json["eval"] = to_string(config.evaluate_on);
  json["eval_every"] = config.evaluate_every;
  json["eval_batch_size"] = config.eval_batch_size;
  json["target_accuracy"] = config.target_accuracy;
  json["checkpoint_dir"] = config.checkpoint_dir;
  json["checkpoint_every"] = config.checkpoint_every;
  json["keep_checkpoints"] = config.keep_checkpoints;
  json["resume"] = config.resume;
  json["allow_other_data"] = config.allow_other_data;
  return json;
}

}  // namespace trireme::train
