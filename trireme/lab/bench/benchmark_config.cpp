#include "trireme/lab/bench/benchmark_config.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

// A run with neither size nor number of steps should end in about two minutes on a few cores, including compiling.
constexpr std::int64_t kQuickBatchSize = 16;
constexpr double kQuickSeconds = 100;
// Steps with and without data alternate, so that their difference has a spread.
constexpr std::int64_t kIoOverheadRepeats = 5;
constexpr std::int64_t kManySteps = 1'000'000'000;

std::int64_t checked(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) bad_input("--{} {}: must be a whole number from {} to {}", option, value, low, high);
  return value;
}

void check_baseline(const train::DistributionConfig& config) {
  if (!config.is_synchronous()) {
    bad_input("--baseline compares workers that train together with one alone; there is {} and --variable-update {}",
              config.workers == 1   ? "one worker"
              : config.asynchronous ? "no lock-step"
                                    : "nothing to exchange",
              to_string(config.update));
  }
  if (config.sync_batch_norm)
    bad_input("--baseline and --sync-batch-norm exclude each other: a worker alone has no others' statistics");
}

void check_timing(const BenchmarkOptions& options, const train::DistributionConfig& distribution) {
  if (options.baseline) check_baseline(distribution);
  if (options.io_overhead && options.data.dir.empty()) {
    bad_input("--io-overhead has no effect on synthetic images: --data-dir names a data set");
  }
}

}  // namespace

train::DistributionConfig check_before_launch(const BenchmarkOptions& options, const comm::JobSize& job) {
  const train::DistributionConfig distribution = train::resolve(options.distribution, job, options.forward_only);
  train::resolve_data(options.data, options.forward_only);
  check_timing(options, distribution);
  return distribution;
}

BenchmarkConfig resolve(const BenchmarkOptions& options, const comm::JobSize& job) {
  train::StepOptions step = options;
  const bool is_quick = !options.batch_size && !options.num_batches && !options.max_seconds;
  if (is_quick) step.batch_size = std::min(kQuickBatchSize, find_model(options.model).batch_size);
  BenchmarkConfig config;
  static_cast<train::StepConfig&>(config) = train::resolve(step, job);
  config.batch_size_chosen = is_quick;
  check_timing(options, config.distribution);
  config.io_overhead = options.io_overhead;
  config.baseline = options.baseline;
  config.num_batches = checked("num-batches", options.num_batches.value_or(config.num_batches), 1, kManySteps);
  config.num_warmup_batches = checked("num-warmup-batches", options.num_warmup_batches, 0, kManySteps);
  config.repeats =
      checked("repeats", options.repeats.value_or(config.io_overhead ? kIoOverheadRepeats : 1), 1, 100'000);
  config.display_every = checked("display-every", options.display_every, 1, kManySteps);
  if (options.max_seconds) {
    config.max_seconds = *options.max_seconds;
    if (!std::isfinite(config.max_seconds) || config.max_seconds <= 0) {
      bad_input("--max-seconds {}: must be a finite number above 0", config.max_seconds);
    }
  } else if (!options.num_batches) {
    config.max_seconds = kQuickSeconds;
  }
  config.profile = options.profile;
  config.given = options.given;
  config.profile_rows = checked("profile-rows", options.profile_rows, 1, kManySteps);
  return config;
}

Json to_json(const BenchmarkConfig& config) {
  Json json = train::to_json(config);
  json["num_batches"] = config.num_batches;
  json["num_warmup_batches"] = config.num_warmup_batches;
  json["repeats"] = config.repeats;
  json["display_every"] = config.display_every;
  json["max_seconds"] = config.max_seconds > 0 ? Json(config.max_seconds) : Json(nullptr);
  json["baseline"] = config.baseline;
  if (config.data.is_real()) json["io_overhead"] = config.io_overhead;
  json["profile"] = config.profile;
  return json;
}

}  // namespace trireme::lab
