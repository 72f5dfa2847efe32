#include "trireme/lab/bench/benchmark_config.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::lab {
namespace {

// A run with neither size nor number of steps should end in about two minutes on a few cores, including compiling.
constexpr std::int64_t kQuickBatchSize = 16;
constexpr double kQuickSeconds = 100;
// Steps with and without data alternate, so that their difference has a spread.
constexpr std::int64_t kIoOverheadRepeats = 5;
constexpr std::int64_t kUsualBatches = 100;

void check_baseline(const train::DistributionConfig& config) {
  if (!config.is_synchronous()) {
    bad_input("--baseline compares workers that train together with one alone; there is {} and --variable-update {}",
              config.workers == 1   ? "one worker"
              : config.asynchronous ? "no lock-step"
                                    : "nothing to exchange",
              to_string(config.update));
  }
  if (config.pipeline.is_used() || config.pipeline.is_automatic)
    bad_input("--baseline and --parallel {} cannot be used together: a stage alone trains nothing",
              config.pipeline.text());
  if (config.shard_optimizer)
    bad_input("--baseline and --shard-optimizer cannot be used together: one worker alone has a part of the state");
  if (config.sync_batch_norm)
    bad_input("--baseline and --sync-batch-norm cannot be used together: one worker alone has only its own statistics");
}

void check_timing(const BenchmarkOptions& options, const train::DistributionConfig& distribution) {
  if (options.baseline) check_baseline(distribution);
  if (options.io_overhead && options.data.dir.empty()) {
    bad_input("--io-overhead has no effect on synthetic images: give a data set with --data-dir");
  }
  if (distribution.is_elastic() && (options.baseline || options.io_overhead)) {
    bad_input("--elastic and {} cannot be used together: it compares speeds of all workers",
              options.baseline ? "--baseline" : "--io-overhead");
  }
}

}  // namespace

train::DistributionConfig check_before_launch(const BenchmarkOptions& options, const comm::JobSize& job) {
  config::step_table().check(options);
  config::timing_table().check(options);
  const train::DistributionConfig distribution = train::resolve(options.distribution, job, options.forward_only);
  train::resolve_data(options.data, options.forward_only);
  check_timing(options, distribution);
  return distribution;
}

BenchmarkConfig resolve(const BenchmarkOptions& options, const comm::JobSize& job) {
  train::StepOptions step = options;
  const bool is_quick = !options.batch_size && !options.num_batches && !options.max_seconds;
  if (is_quick) step.batch_size = std::min(kQuickBatchSize, find_model(options.model).batch_size);
  config::timing_table().check(options);
  BenchmarkConfig config;
  static_cast<train::StepConfig&>(config) = train::resolve(step, job);
  static_cast<TimingOptions&>(config) = options;
  config.batch_size_chosen = is_quick;
  config.given = options.given;
  check_timing(options, config.distribution);
  config.repeats = options.repeats.value_or(options.io_overhead ? kIoOverheadRepeats : 1);
  if (!options.num_batches && !options.max_seconds) config.max_seconds = kQuickSeconds;
  config.num_batches = options.num_batches.value_or(kUsualBatches);
  return config;
}

Json to_json(const BenchmarkConfig& config) {
  Json json = train::to_json(config);
  json.update(config::timing_table().json(config));
  return json;
}

}  // namespace trireme::lab
