#include "trireme/train/step_config.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/new_file.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::train {
namespace {

// Computed in double but used in fp32, where it must be neither 0 nor infinite.
double checked_rate(const char* option, double value) {
  using Limits = std::numeric_limits<float>;
  if (!(value >= Limits::denorm_min() && value <= Limits::max())) {
    bad_input("--{} {}: a learning rate must be a finite number above 0 in fp32, from {:.2g} to {:.2g}", option, value,
              Limits::denorm_min(), Limits::max());
  }
  return value;
}

// The number as written, not the nearest float with all its digits.
double as_written(float value) { return std::stod(fmt::format("{}", value)); }

// A choice by its name, which the table of options has checked.
template <typename Choice>
Choice parse(std::string_view text, std::initializer_list<Choice> choices) {
  return *std::ranges::find_if(choices, [&](Choice choice) { return text == to_string(choice); });
}

DataFormat parse_data_format(std::string_view text) {
  if (text == "NCHW") return DataFormat::nchw;  // tf_cnn_benchmarks' spelling
  if (text == "NHWC") return DataFormat::nhwc;
  return parse(text, {DataFormat::automatic, DataFormat::nchw, DataFormat::nhwc});
}

// A GPU has one backend, named after the GPU; the CPU has several.
std::string checked_backend(const std::string& name, const std::string& device) {
  if (device != "cpu") {
    if (device != "cuda" && !device.starts_with("cuda:")) {
      bad_input("--device {}: must be cpu, cuda, or one GPU of several: cuda:0, cuda:1, ...", device);
    }
    if (!name.empty() && name != "cuda") bad_input("--backend {}: runs on the CPU, not on --device {}", name, device);
    return device;
  }
  if (name == "cuda") bad_input("--backend cuda: needs --device cuda");
  if (name.empty()) return default_backend();
  const auto names = backend_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    fail(name == "onednn" ? ErrorKind::unavailable : ErrorKind::bad_input, "--backend {}: this build has: {}", name,
         fmt::join(names, ", "));
  }
  return name;
}

std::string checked_tune_cache(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (path.empty() || std::filesystem::is_directory(path, error) || is_special(path) ||
      (!folder.empty() && !std::filesystem::is_directory(folder, error))) {
    bad_input("--tune-cache '{}': must be a file in a folder that exists", path);
  }
  return path;
}

int parse_batch_split(const std::string& text, std::int64_t batch_size) {
  if (text == "auto") return 0;
  const int groups = parse_number<int>(text).value_or(0);
  if (groups < 1) {
    bad_input("--batch-split {}: must be auto or a number of groups of cores, 1 or more", text);
  }
  if (batch_size % groups != 0) {
    bad_input("--batch-split {}: {} images cannot be divided evenly over {} groups", text, batch_size, groups);
  }
  return groups;
}

op::OptimizerRule resolve_optimizer(const StepOptions& options) {
  op::OptimizerRule rule = optimizer_rule(parse_optimizer(options.optimizer));
  for (const auto& [name, value] : options.optimizer_numbers) {
    const auto* const number = std::ranges::find(op::kRuleNumbers, name, &op::RuleNumber::name);
    if (number == op::kRuleNumbers.end() || number->member == &op::OptimizerRule::weight_decay) {
      bad_input("'{}' is not an option of an optimizer", name);
    }
    const std::string option = option_name(*number);
    // tf_cnn_benchmarks scripts give --momentum for every optimizer.
    if (!op::uses(rule.kind, *number) && name != "momentum") {
      bad_input("--{} has no effect on the optimizer {}", option, op::to_string(rule.kind));
    }
    rule.*number->member = static_cast<float>(value);
  }
  rule.weight_decay = static_cast<float>(options.weight_decay);
  return rule;
}

ExponentialRate resolve_exponential(const StepOptions& options) {
  ExponentialRate rate;
  rate.decay = options.learning_rate_decay_factor.value_or(rate.decay);
  rate.epochs_per_decay = options.num_epochs_per_decay.value_or(rate.epochs_per_decay);
  return rate;
}

CosineRate resolve_cosine(const StepOptions& options) {
  CosineRate rate;
  rate.total_epochs = options.num_epochs_per_decay.value_or(rate.total_epochs);
  return rate;
}

void refuse_unused_schedule_options(const StepOptions& options, std::string_view kind) {
  const auto refuse = [&](const char* option) {
    bad_input("--{} has no effect on the {} learning rate schedule", option, kind);
  };
  if (options.learning_rate_decay_factor && kind != "exponential") refuse("learning-rate-decay-factor");
  if (options.num_epochs_per_decay && kind != "exponential" && kind != "cosine") refuse("num-epochs-per-decay");
  if (!options.piecewise_learning_rate_schedule.empty() && kind != "piecewise")
    refuse("piecewise-learning-rate-schedule");
}

// Images that one set of variables learns from during a worker's step.
std::int64_t images_per_step(const StepConfig& config) {
  const DistributionConfig& distribution = config.distribution;
  const bool together = distribution.is_synchronous() || distribution.uses_servers();
  return together ? config.batch_size * (distribution.workers - distribution.backup_workers) : config.batch_size;
}

void resolve_schedule(const StepOptions& options, const Network& model, StepConfig& config) {
  LearningRateSchedule& schedule = config.schedule;
  std::string kind = options.learning_rate_schedule;
  if (kind.empty()) kind = options.piecewise_learning_rate_schedule.empty() ? "constant" : "piecewise";
  if (kind == "piecewise") {
    if (options.piecewise_learning_rate_schedule.empty()) {
      bad_input("--learning-rate-schedule piecewise needs --piecewise-learning-rate-schedule \"LR0;E1;LR1\"");
    }
    if (options.init_learning_rate)
      bad_input("--init-learning-rate and a piecewise schedule both give the first learning rate; leave one out");
    const PiecewiseRate rate = parse_piecewise(options.piecewise_learning_rate_schedule);
    for (const double value : rate.values) checked_rate("piecewise-learning-rate-schedule", value);
    schedule.initial = rate.values.front();
    schedule.shape = rate;
  } else if (kind == "exponential") {
    schedule.shape = resolve_exponential(options);
  } else if (kind == "cosine") {
    schedule.shape = resolve_cosine(options);
  } else if (kind != "constant") {
    bad_input("--learning-rate-schedule {}: must be one of constant, piecewise, exponential, cosine", kind);
  }
  refuse_unused_schedule_options(options, kind);
  if (options.init_learning_rate) schedule.initial = checked_rate("init-learning-rate", *options.init_learning_rate);
  config.learning_rate_chosen = !options.init_learning_rate && kind != "piecewise";
  schedule.warmup_epochs = options.num_learning_rate_warmup_epochs;
  set_epoch(config, images_per_epoch(model));
}

// GPUs support all; servers and launchers, which also resolve options, need no GPU to know that.
Precision resolve_precision(const std::string& name, const std::string& backend, bool on_gpu) {
  const Precision precision = parse(name, {Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16});
  if (on_gpu || precision == Precision::fp32 || make_backend(backend)->is_fast_in(precision)) return precision;
  if (precision != Precision::bf16) bad_input("--precision {}: needs a GPU: --device cuda", name);
  fail(backend == "reference" ? ErrorKind::bad_input : ErrorKind::unavailable,
       "--precision bf16: the backend {} has no fast bf16 here; bf16 needs a GPU, or the backend onednn and a CPU with "
       "avx512_bf16 or amx_bf16 (trireme doctor lists what this one has); use --precision fp32",
       backend);
}

}  // namespace

std::string_view to_string(BatchNormOver over) { return over == BatchNormOver::group ? "group" : "batch"; }

void set_epoch(StepConfig& config, std::int64_t images) {
  config.schedule.steps_per_epoch = static_cast<double>(images) / static_cast<double>(images_per_step(config));
}

std::int64_t images_per_epoch(const Network& model) {
  if (model.image_size == 28) return 60'000;
  if (model.image_size == 32) return 50'000;
  return 1'281'167;
}

double default_learning_rate(op::OptimizerKind optimizer, bool batch_norm, std::int64_t gradient_tensors) {
  // Without batch norm, gradients shrink from layer to layer under the networks' initial values: those with more than a
  // dozen layers need, and tolerate, a larger rate.
  constexpr std::int64_t kDeep = 24;
  const double rate = batch_norm ? 0.005 : gradient_tensors > kDeep ? 0.003 : 0.001;
  const op::OptimizerInfo& info = op::info(optimizer);
  return info.fixed_rate > 0 ? info.fixed_rate : info.rate_factor * rate;
}

namespace {

// What stages cannot do, because each has a part of the network, or cannot do yet.
void resolve_for_pipeline(StepConfig& config) {
  const PipelineConfig& pipeline = config.distribution.pipeline;
  const std::string option = "--parallel " + pipeline.text();
  const auto refuse = [&](bool given, std::string_view what, std::string_view why) {
    if (given) bad_input("{} and {} cannot be used together: {}", option, what, why);
  };
  refuse(config.options.forward_only, "--forward-only", "pipelines train");
  refuse(config.on_gpu() && pipeline.is_automatic, "--device cuda", "it plans for CPUs");
  refuse(config.distribution.shard_optimizer && pipeline.is_automatic, "--shard-optimizer", "it plans without it");
  refuse(config.distribution.gpu_sums == GpuSums::always, "--all-reduce nccl",
         "the workers of a stage sum their gradients in host memory");
  refuse(config.distribution.uses_servers(), "parameter servers", "stages sum their gradients by all-reduce");
  refuse(config.distribution.update == VariableUpdate::independent && config.distribution.workers > 1,
         "--variable-update independent", "the workers train one network");
  refuse(config.distribution.sync_batch_norm, "--sync-batch-norm", "batch norm uses the images of a micro-batch");
  refuse(config.batch_split > 1, "--batch-split", "a stage works with all its cores");
  refuse(config.inter_threads > 1, "--num-inter-threads", "a stage runs its operations in the order of the schedule");
  refuse(config.precision == Precision::fp16, "--precision fp16",
         "whether an update is skipped depends on all gradients, and each stage has a part of them");
  config.inter_threads = 1;
  config.batch_split = 1;
  if (pipeline.is_used() || pipeline.micro_batches > 0)
    divide_batch(config.distribution.pipeline, config.global_batch_size());
}

// Restricts choices for several workers or bit-reproducible results.
void resolve_for_workers(const StepOptions& options, StepConfig& config) {
  const DistributionConfig& distribution = config.distribution;
  if (options.deterministic) {
    if (distribution.all_reduce == comm::Algorithm::library || distribution.gpu_sums == GpuSums::always)
      bad_input("--deterministic and --all-reduce {} cannot be used together: the library chooses the order of sums",
                options.distribution.all_reduce);
    config.distribution.gpu_sums = GpuSums::never;
    // Timings, and the choices made by them, differ from run to run.
    config.autotune = Autotune::off;
    if (config.batch_split == 0) config.batch_split = 1;
    if (!distribution.network_file_given) config.distribution.network_file.clear();
    if (distribution.pipeline.is_automatic)
      bad_input("--deterministic and --parallel auto cannot be used together: measurements differ from run to run");
    if (distribution.asynchronous)
      bad_input("--deterministic and {} cannot be used together: servers apply gradients as they arrive",
                options.distribution.asynchronous ? "--async" : "--staleness");
  }
  if (distribution.shard_optimizer && config.backend != "onednn") {
    bad_input(
        "--shard-optimizer: works with the backend onednn on CPUs, not with {}; leave it out, or use --parallel "
        "pipeline:STAGES, where each stage has a part of the state",
        config.on_gpu() ? "--device " + config.backend : "--backend " + config.backend);
  }
  if (distribution.is_elastic()) {
    if (config.on_gpu()) bad_input("--elastic works on CPUs so far; leave out --device {}", options.device);
    if (options.num_inter_threads > 1)
      bad_input("--elastic and --num-inter-threads {} cannot be used together", options.num_inter_threads);
    if (config.precision == Precision::fp16)
      bad_input("--elastic and --precision fp16 cannot be used together; use bf16");
  }
  if (!config.on_gpu()) {
    if (distribution.gpu_sums == GpuSums::always) bad_input("--all-reduce nccl: needs GPUs: --device cuda");
    config.distribution.gpu_sums = GpuSums::never;
  }
  if (distribution.pipeline.is_used() || distribution.pipeline.is_automatic) resolve_for_pipeline(config);
  if (distribution.workers == 1 && !distribution.uses_servers()) return;
  if (config.batch_split == 0) config.batch_split = 1;
  if (distribution.uses_servers() && config.precision == Precision::fp16) {
    bad_input(
        "--precision fp16: whether an update is skipped depends on all gradients, and each parameter server has a part "
        "of them; use --variable-update all_reduce, or --precision bf16");
  }
}

}  // namespace

StepConfig resolve(const StepOptions& options, const comm::JobSize& job) {
  const Network& model = find_model(options.model);

  config::step_table().check(options);

  StepConfig config;
  config.options = options;
  config.distribution = resolve(options.distribution, job, options.forward_only);
  config.data = resolve_data(options.data, options.forward_only);
  config.batch_size = options.batch_size.value_or(model.batch_size);
  config.num_classes = options.num_classes.value_or(0);
  if (options.aux_head && options.forward_only)
    bad_input("--aux-head has no effect with --forward-only: the head is only for training");
  config.optimizer = resolve_optimizer(options);
  resolve_schedule(options, model, config);
  config.data_format = parse_data_format(options.data_format);
  config.backend = checked_backend(options.backend, options.device);
  config.precision = resolve_precision(options.precision, config.backend, config.on_gpu());
  config.autotune = parse(options.autotune, {Autotune::off, Autotune::fast, Autotune::full});
  config.recompute = parse(options.recompute, {Recompute::none, Recompute::cheap, Recompute::full});
  if (options.forward_only && config.recompute != Recompute::none)
    bad_input("--recompute {} has no effect with --forward-only: nothing is kept for backward", options.recompute);
  config.tune_cache = options.tune_cache ? checked_tune_cache(*options.tune_cache) : TuneCache::default_path();
  config.intra_threads = static_cast<int>(options.num_intra_threads);
  config.inter_threads = static_cast<int>(options.num_inter_threads);
  config.batch_split = parse_batch_split(options.batch_split, config.batch_size);
  config.batch_norm_over = parse(options.batch_norm_over, {BatchNormOver::batch, BatchNormOver::group});
  if (config.batch_norm_over == BatchNormOver::group && (config.batch_split < 2 || options.forward_only)) {
    // Not with auto: a timing must not decide what is trained.
    bad_input("--batch-norm-over group needs training and a number of groups: --batch-split 2 or more");
  }
  if (config.batch_split > 1 && config.inter_threads > 1)
    bad_input("--batch-split {} and --num-inter-threads {} cannot be used together", config.batch_split,
              config.inter_threads);
  resolve_for_workers(options, config);
  validate(config.schedule);
  return config;
}

CompileOptions compile_options(const StepConfig& config) {
  CompileOptions options;
  options.state_shards = config.distribution.state_shards(config.distribution.workers);
  options.data_format = config.data_format;
  options.recompute = config.recompute;
  options.precision = config.precision;
  // On a GPU one kernel updates all variables.
  if (config.on_gpu()) options.update_bytes = std::numeric_limits<std::int64_t>::max();
  return options;
}

// The options as given, and what resolve() and the worker have made of them.
Json to_json(const StepConfig& config) {
  Json json = config::step_table().json(config.options);
  json.update({{"batch_size", config.batch_size},
               {"num_classes", config.num_classes},
               {"weight_decay", as_written(config.optimizer.weight_decay)},
               {"init_learning_rate", config.schedule.initial},
               {"learning_rate_schedule", to_string(config.schedule)},
               {"data_format", to_string(config.data_format)},
               {"backend", config.backend},
               {"autotune", to_string(config.autotune)},
               {"recompute", to_string(config.recompute)},
               {"tune_cache", config.tune_cache},
               {"num_intra_threads", config.intra_threads},
               {"num_inter_threads", config.inter_threads},
               {"batch_split", config.batch_split}});
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.member == &op::OptimizerRule::weight_decay) continue;
    json.erase(number.name);
    if (op::uses(config.optimizer.kind, number)) json[number.name] = as_written(config.optimizer.*number.member);
  }
  add_json(config.data, json);
  add_json(config.distribution, json);
  if (config.options.distribution.parallel == "auto") json["parallel"] = "auto";
  json.erase("sync");  // these two say what others do
  json.erase("distortions");
  return json;
}

}  // namespace trireme::train
