#include "trireme/train/data_config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/perf/threads.hpp"

namespace trireme::train {
namespace {

void check_synthetic(const StepOptions& step) {
  for (const config::Option* each : config::step_table().changed(step, config::kDataGroup)) {
    if (each->name == "data-name" && step.data.name == "synthetic") continue;
    bad_input("--{} has no effect on synthetic images: give a data set with --data-dir", each->name);
  }
}

// If nothing is trained, --crop means the evaluation crop.
data::PreprocessingOptions resolve_preprocessing(const DataOptions& options, bool forward_only) {
  data::PreprocessingOptions result;
  if (options.distortions && options.augment) {
    bad_input("--distortions means --augment flip,colour, but --augment {} is given too; leave one out",
              *options.augment);
  }
  if (forward_only && (options.distortions || options.augment)) {
    bad_input("{} has no effect with --forward-only: only training changes images at random",
              options.augment ? "--augment" : "--distortions");
  }
  if (options.crop) {
    (forward_only ? result.eval_crop : result.crop) = data::parse_crop("crop", *options.crop, !forward_only);
  }
  if (options.eval_crop) result.eval_crop = data::parse_crop("eval-crop", *options.eval_crop, false);
  if (options.augment) result.augment = data::parse_augment(*options.augment);
  if (options.distortions) result.augment = data::Augmentation{.flip = true, .colour = true};
  if (options.mean) result.mean = data::parse_mean(*options.mean);
  if (options.deviation) result.deviation = data::parse_deviation(*options.deviation);
  return result;
}

}  // namespace

DataConfig resolve_data(const DataOptions& options, bool forward_only) {
  StepOptions step;
  step.data = options;
  config::step_table().check(step);
  DataConfig config;
  config.dir = options.dir;
  if (!config.is_real()) {
    check_synthetic(step);
    return config;
  }
  config.name = options.name.value_or("auto");
  if (config.name == "imagenet") config.name = "tfrecord";  // tf_cnn_benchmarks' name
  if (config.name == "synthetic")
    bad_input("--data-name synthetic and --data-dir {} cannot be used together", options.dir);
  config.threads = static_cast<int>(options.threads.value_or(config.threads));
  config.default_threads = !options.threads;
  config.prefetch = static_cast<int>(options.prefetch.value_or(config.prefetch));
  config.cache_bytes = options.cache_bytes.value_or(0);
  config.max_bad_records = options.max_bad_records.value_or(0);
  config.preprocessing = resolve_preprocessing(options, forward_only);
  return config;
}

void DataConfig::set_threads(bool on_gpu) {
  if (default_threads && on_gpu) threads = static_cast<int>(perf::usable_processors().size());
}

void add_json(const DataConfig& config, Json& json) {
  json["data_name"] = config.is_real() ? config.name : "synthetic";
  if (!config.is_real()) return;
  json["data_threads"] = config.threads;
  json["prefetch"] = config.prefetch;
  json["data_cache"] = config.cache_bytes;
  json["max_bad_records"] = config.max_bad_records;
  const data::PreprocessingOptions& done = config.preprocessing;
  if (done.crop) json["crop"] = data::to_string(*done.crop);
  if (done.eval_crop) json["eval_crop"] = data::to_string(*done.eval_crop);
  if (done.augment) json["augment"] = data::to_string(*done.augment);
  if (!done.mean.empty()) json["mean"] = data::to_string(done.mean);
  if (!done.deviation.empty()) json["std"] = data::to_string(done.deviation);
}

}  // namespace trireme::train
