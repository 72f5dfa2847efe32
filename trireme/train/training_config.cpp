#include "trireme/train/training_config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::train {
namespace {

void resolve_gradients(const TrainingOptions& options, TrainingConfig& config) {
  config.gradients.accumulate = static_cast<int>(options.accumulate);
  config.gradients.clip_norm = options.clip_norm;
  if (options.lars) {
    // LARS includes weight decay when it scales gradients: the rule must not add it again.
    config.gradients.lars = Lars{*options.lars, config.step.optimizer.weight_decay};
    config.step.optimizer.weight_decay = 0;
  }
  const DistributionConfig& distribution = config.step.distribution;
  if (config.gradients.transforms() && distribution.uses_servers() && !distribution.asynchronous) {
    bad_input(
        "{}: each parameter server has a part of the mean gradient, and its norm needs all of it; use --async, which "
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

void check_checkpoints(const LoopOptions& options) {
  if (options.checkpoint_dir.empty() && (options.resume || options.checkpoint_every > 0)) {
    bad_input("{} needs --checkpoint-dir", options.resume ? "--resume" : "--checkpoint-every");
  }
  if (options.allow_other_data && !options.resume) bad_input("--allow-other-data has no effect without --resume");
}

// Workers meet only in steps, which alone survive a loss.
void check_elastic(const LoopOptions& options, TrainingConfig& config) {
  if (!config.step.distribution.is_elastic()) {
    if (!options.replay.empty()) bad_input("--replay needs the options of the run, with --elastic");
    return;
  }
  if (options.target_accuracy > 0)
    bad_input("--elastic and --target-accuracy cannot be used together: only the first worker evaluates");
  if (config.evaluate_on == "all") config.evaluate_on = "first";
}

}  // namespace

EvaluateOn TrainingConfig::evaluates() const {
  return evaluate_on == "all" ? EvaluateOn::all : evaluate_on == "first" ? EvaluateOn::first : EvaluateOn::nobody;
}

TrainingConfig resolve(const TrainingOptions& options, const comm::JobSize& job) {
  config::loop_table().check(options);
  TrainingConfig config{options, resolve(options.step, job), {}};
  if (!config.step.data.is_real()) {
    bad_input("train needs data: give --data-dir, or make some with `trireme data make`; `bench` needs none");
  }
  if (config.step.distribution.workers > 1 && config.step.distribution.update == VariableUpdate::independent) {
    bad_input("--variable-update independent: workers that exchange nothing would each train their own network");
  }
  config.step.decays_batch_norm = !options.skip_batch_norm_decay;
  resolve_gradients(options, config);
  if (const PipelineConfig& pipeline = config.step.distribution.pipeline; pipeline.is_used() || pipeline.is_automatic) {
    if (options.clip_norm > 0) {
      bad_input("--parallel {} and --clip-norm cannot be used together: each stage has a part of the gradients",
                pipeline.text());
    }
    if (options.average_decay > 0) {
      bad_input("--parallel {} and --average cannot be used together: checkpoints do not bring averages together",
                pipeline.text());
    }
  }
  if (options.target_accuracy > 0 && config.evaluates() == EvaluateOn::nobody) {
    bad_input("--target-accuracy needs an evaluation: leave out --eval none");
  }
  check_checkpoints(options);
  check_elastic(options, config);
  return config;
}

Json to_json(const TrainingConfig& config) {
  Json json = to_json(config.step);
  json.update(config::loop_table().json(config));
  json["lars"] = config.lars.value_or(0);
  if (config.gradients.lars) json["weight_decay"] = config.gradients.lars->weight_decay;
  json["eval_batch_size"] = config.evaluation_batch();
  return json;
}

}  // namespace trireme::train
