#include "trireme/lab/data_config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/perf/threads.hpp"

namespace trireme::lab {
namespace {

constexpr std::int64_t kMany = std::int64_t{1} << 50;

std::int64_t checked(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high) bad_input("--{} {}: must be a whole number from {} to {}", option, value, low, high);
  return value;
}

void check_synthetic(const DataOptions& options) {
  const auto refuse = [](bool given, const char* option) {
    if (given) bad_input("{} has no effect on synthetic images: --data-dir names a data set", option);
  };
  refuse(options.name && *options.name != "synthetic", "--data-name");
  refuse(options.threads.has_value(), "--data-threads");
  refuse(options.prefetch.has_value(), "--prefetch");
  refuse(options.cache_bytes.has_value(), "--data-cache");
  refuse(options.max_bad_records.has_value(), "--max-bad-records");
  refuse(options.distortions, "--distortions");
  refuse(options.io_overhead, "--io-overhead");
}

}  // namespace

DataConfig resolve_data(const DataOptions& options) {
  DataConfig config;
  config.dir = options.dir;
  if (!config.is_real()) {
    check_synthetic(options);
    return config;
  }
  config.name = options.name.value_or("auto");
  if (config.name == "imagenet") config.name = "tfrecord";  // as tf_cnn_benchmarks says it
  if (config.name == "synthetic") bad_input("--data-name synthetic and --data-dir {} exclude each other", options.dir);
  config.threads = static_cast<int>(checked("data-threads", options.threads.value_or(config.threads), 1, 1024));
  config.default_threads = !options.threads;
  config.prefetch = static_cast<int>(checked("prefetch", options.prefetch.value_or(config.prefetch), 1, 1024));
  config.cache_bytes = checked("data-cache", options.cache_bytes.value_or(0), 0, kMany);
  config.max_bad_records = checked("max-bad-records", options.max_bad_records.value_or(0), 0, kMany);
  config.distortions = options.distortions;
  config.io_overhead = options.io_overhead;
  return config;
}

void DataConfig::set_threads(bool on_gpu) {
  if (default_threads && on_gpu) threads = static_cast<int>(perf::usable_processors().size());
}

void add_json(const DataConfig& config, report::Json& json) {
  json["data_name"] = config.is_real() ? config.name : "synthetic";
  if (!config.is_real()) return;
  json["data_dir"] = config.dir;
  json["data_threads"] = config.threads;
  json["prefetch"] = config.prefetch;
  json["data_cache"] = config.cache_bytes;
  json["max_bad_records"] = config.max_bad_records;
  json["distortions"] = config.distortions;
  json["io_overhead"] = config.io_overhead;
}

}  // namespace trireme::lab
