#include "trireme/lab/distribution.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme::lab {
namespace {

constexpr std::int64_t kMegabyte = 1'000'000;

VariableUpdate parse_update(const std::string& text, int workers, bool forward_only) {
  if (text == "auto") {
    return workers > 1 && !forward_only ? VariableUpdate::all_reduce : VariableUpdate::independent;
  }
  for (const VariableUpdate update : {VariableUpdate::independent, VariableUpdate::all_reduce}) {
    if (text != to_string(update)) continue;
    if (update == VariableUpdate::all_reduce && forward_only)
      bad_input("--variable-update all_reduce has no effect with --forward-only: nothing is updated");
    return update;
  }
  bad_input("--variable-update {}: this build has: auto, all_reduce, independent", text);
}

bool parse_switch(const char* option, const std::string& text) {
  if (text != "on" && text != "off") bad_input("--{} {}: must be on or off", option, text);
  return text == "on";
}

std::int64_t parse_bucket(const std::string& text) {
  if (text == "auto") return 0;
  double megabytes = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), megabytes);
  if (error != std::errc() || end != text.data() + text.size() || !(megabytes > 0 && megabytes <= 1e5)) {
    bad_input("--bucket-mb {}: must be auto or a number of megabytes above 0", text);
  }
  return std::max<std::int64_t>(1, std::llround(megabytes * kMegabyte));
}

}  // namespace

std::string_view to_string(VariableUpdate update) {
  return update == VariableUpdate::all_reduce ? "all_reduce" : "independent";
}

DistributionConfig resolve(const DistributionOptions& options, int workers, bool forward_only) {
  DistributionConfig config;
  config.workers = workers;
  config.update = parse_update(options.variable_update, workers, forward_only);
  config.all_reduce = comm::parse_algorithm(options.all_reduce);
  config.bucket_bytes = parse_bucket(options.bucket_mb);
  config.wire = comm::parse_wire(options.gradient_precision);
  config.overlap = parse_switch("overlap", options.overlap);
  config.sync_batch_norm = options.sync_batch_norm;
  config.baseline = options.baseline;
  if (options.check_replicas < 0) bad_input("--check-replicas {}: must be 0 or more steps", options.check_replicas);
  config.check_replicas = options.check_replicas;
  if (!(options.comm_timeout > 0 && options.comm_timeout <= 1e6))
    bad_input("--comm-timeout {}: must be a number of seconds above 0", options.comm_timeout);
  config.comm_timeout = options.comm_timeout;
  if (config.sync_batch_norm && config.update != VariableUpdate::all_reduce)
    bad_input("--sync-batch-norm needs --variable-update all_reduce: other workers share nothing");
  if (config.baseline && !config.is_synchronous()) {
    bad_input("--baseline compares workers that train together with one alone; there is {} and --variable-update {}",
              workers == 1 ? "one worker" : "nothing to exchange", to_string(config.update));
  }
  if (config.baseline && config.sync_batch_norm)
    bad_input("--baseline and --sync-batch-norm exclude each other: a worker alone has no others' statistics");
  return config;
}

void add_json(const DistributionConfig& config, report::Json& json) {
  json["variable_update"] = to_string(config.update);
  json["workers"] = config.workers;
  json["all_reduce"] = comm::to_string(config.all_reduce);
  json["bucket_mb"] = config.bucket_bytes == 0
                          ? report::Json("auto")
                          : report::Json(static_cast<double>(config.bucket_bytes) / static_cast<double>(kMegabyte));
  json["gradient_precision"] = comm::to_string(config.wire);
  json["overlap"] = config.overlap;
  json["sync_batch_norm"] = config.sync_batch_norm;
  json["check_replicas"] = config.check_replicas;
  json["comm_timeout"] = config.comm_timeout;
  json["baseline"] = config.baseline;
}

std::int64_t bucket_bytes_for(const DistributionConfig& config, std::int64_t gradient_bytes) {
  if (config.bucket_bytes > 0) return config.bucket_bytes;
  constexpr std::int64_t kBuckets = 16;
  return std::clamp(gradient_bytes / kBuckets, kMegabyte, 25 * kMegabyte);
}

}  // namespace trireme::lab
