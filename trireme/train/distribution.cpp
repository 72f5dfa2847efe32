#include "trireme/train/distribution.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/base/error.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/comm/network_file.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::train {
namespace {

constexpr std::int64_t kMegabyte = 1'000'000;
constexpr Names<VariableUpdate, 4> kUpdates{{
    {VariableUpdate::independent, "independent"},
    {VariableUpdate::all_reduce, "all_reduce"},
    {VariableUpdate::parameter_server, "parameter_server"},
    {VariableUpdate::distributed_replicated, "distributed_replicated"},
}};
constexpr const char* kHowToGetServers = "trireme launch --ps N starts them, --ps-hosts names those started by hand";

constexpr const char* kNccl = "nccl";

VariableUpdate automatic_update(const DistributionOptions& options, const comm::JobSize& job, bool forward_only) {
  if (job.servers > 0) return VariableUpdate::parameter_server;
  const bool together = job.workers > 1 || options.all_reduce == kNccl;
  return together && !forward_only ? VariableUpdate::all_reduce : VariableUpdate::independent;
}

VariableUpdate parse_update(const DistributionOptions& options, const comm::JobSize& job, bool forward_only) {
  if (options.variable_update == "auto") return automatic_update(options, job, forward_only);
  return parse_name(options.variable_update, kUpdates, "--variable-update");
}

// The update method must suit the servers and training.
void check_update(const DistributionConfig& config, bool forward_only) {
  if (forward_only && config.servers > 0)
    bad_input("--forward-only updates nothing, so there is nothing for servers to do; leave out --ps");
  if (forward_only && config.update != VariableUpdate::independent) {
    bad_input("--variable-update {} has no effect with --forward-only: nothing is updated", to_string(config.update));
  }
  if (config.uses_servers() && config.servers == 0) {
    bad_input("--variable-update {} needs parameter servers: {}", to_string(config.update), kHowToGetServers);
  }
  if (!config.uses_servers() && config.servers > 0) {
    bad_input("--variable-update {} uses no parameter servers, and there {} {}; leave out --ps",
              to_string(config.update), config.servers == 1 ? "is" : "are", config.servers);
  }
}

// Named algorithms run on the hosts, except NCCL.
void resolve_all_reduce(const DistributionOptions& options, DistributionConfig& config) {
  if (options.all_reduce == kNccl) {
    config.gpu_sums = GpuSums::always;
    if (config.wire != comm::Wire::fp32)
      bad_input("--gradient-precision {}: --all-reduce nccl sums only in fp32", options.gradient_precision);
    if (!config.overlap)
      bad_input("--overlap off and --all-reduce nccl cannot be used together: GPUs sum during backward");
    return;
  }
  config.all_reduce = comm::parse_algorithm(options.all_reduce);
  const bool hosts = config.all_reduce != comm::Algorithm::automatic || config.wire != comm::Wire::fp32;
  if (hosts || !config.overlap) config.gpu_sums = GpuSums::never;
}

std::int64_t parse_bucket(const std::string& text) {
  if (text == "auto") return 0;
  const auto megabytes = parse_number<double>(text);
  if (!megabytes || !(*megabytes > 0 && *megabytes <= 1e5)) {
    bad_input("--bucket-mb {}: must be auto or a number of megabytes above 0", text);
  }
  return std::max<std::int64_t>(1, std::llround(*megabytes * kMegabyte));
}

// Rejects options that need servers; --sync states the default.
void check_without_servers(const StepOptions& step) {
  for (const config::Option* each : config::step_table().changed(step, config::kServerGroup)) {
    if (each->name == "sync") continue;
    bad_input("--{} has no effect without parameter servers: {}", each->name, kHowToGetServers);
  }
}

void check_order(const DistributionOptions& options, const DistributionConfig& config) {
  if (options.synchronous && options.asynchronous) bad_input("--sync and --async cannot be used together");
  if (options.synchronous && options.staleness) {
    bad_input("--sync and --staleness cannot be used together: synchronous workers are never ahead of each other");
  }
  if (config.asynchronous && config.update == VariableUpdate::distributed_replicated) {
    bad_input(
        "--variable-update distributed_replicated is synchronous: its replicas are updated together; leave out {}",
        options.asynchronous ? "--async" : "--staleness");
  }
  if ((config.asynchronous || config.backup_workers > 0) && config.check_replicas > 0) {
    bad_input("--check-replicas {}: workers that do not wait for each other have different variables by design",
              config.check_replicas);
  }
}

void check_backup(const DistributionConfig& config) {
  const int backup = config.backup_workers;
  if (backup == 0) return;
  if (backup < 0 || backup >= config.workers) {
    bad_input("--backup-workers {}: must be from 0 to {}, less than the {} worker{} there {}", backup,
              config.workers - 1, config.workers, config.workers == 1 ? "" : "s", config.workers == 1 ? "is" : "are");
  }
  if (config.asynchronous) {
    bad_input("--backup-workers needs synchronous training: asynchronous workers do not wait for each other");
  }
  if (config.update == VariableUpdate::distributed_replicated) {
    bad_input(
        "--backup-workers needs --variable-update parameter_server: replicas are updated with the gradients of all "
        "workers");
  }
}

void check_servers(const DistributionOptions& options, const DistributionConfig& config) {
  check_order(options, config);
  check_backup(config);
  if (config.wire != comm::Wire::fp32) {
    bad_input("--gradient-precision {}: gradients travel to parameter servers in fp32", options.gradient_precision);
  }
  if (options.all_reduce != "auto") {
    bad_input("--all-reduce {} has no effect with parameter servers; leave it out", options.all_reduce);
  }
}

// Measurements matter only if there is a choice.
void resolve_network_file(const DistributionOptions& options, DistributionConfig& config) {
  if (config.chooses_all_reduce()) config.network_file = options.network_file.value_or(comm::default_network_file());
  config.network_file_given = options.network_file.has_value();
  if (config.network_file_given && config.network_file.empty()) {
    bad_input("--network-file has no effect without --all-reduce auto and several workers");
  }
}

void check_batch_norm(const DistributionConfig& config) {
  if (!config.sync_batch_norm) return;
  if (config.update == VariableUpdate::independent)
    bad_input("--sync-batch-norm needs --variable-update all_reduce: other workers share nothing");
  if (config.asynchronous) {
    bad_input("--sync-batch-norm needs workers that train in lock-step: leave out --async and --staleness");
  }
  if (config.backup_workers > 0)
    bad_input("--sync-batch-norm waits for all workers, --backup-workers does not; leave one of them out");
}

void check_shards(const DistributionConfig& config, bool forward_only) {
  if (!config.shard_optimizer) return;
  if (forward_only) bad_input("--shard-optimizer has no effect with --forward-only: nothing is updated");
  if (config.uses_servers())
    bad_input("--shard-optimizer has no effect with parameter servers: each already has a part of the state");
  if (config.update == VariableUpdate::independent && config.workers > 1)
    bad_input("--shard-optimizer needs --variable-update all_reduce: independent workers share nothing");
}

void parse_elastic(const std::string& text, DistributionConfig& config) {
  if (text.empty()) return;
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto least = parse_number<int>(text.substr(0, colon));
  const auto most = parse_number<int>(text.substr(std::min(colon + 1, text.size())));
  if (!least || !most || *least < 1 || *most < *least) {
    bad_input("--elastic {}: must be MIN:MAX workers, such as 2:4", text);
  }
  if (config.workers < *least || config.workers > *most) {
    bad_input("--elastic {}: there {} {} worker{}; start {} to {}", text, config.workers == 1 ? "is" : "are",
              config.workers, config.workers == 1 ? "" : "s", *least, *most);
  }
  config.least_workers = *least;
  config.most_workers = *most;
}

// Those who are left must be able to finish a step alone.
void check_elastic(const DistributionOptions& options, const DistributionConfig& config) {
  if (!config.is_elastic()) return;
  if (config.workers > 1 && config.update != VariableUpdate::all_reduce)
    bad_input("--elastic needs workers that train together by all-reduce: --variable-update all_reduce, no --ps");
  if (config.pipeline.is_used() || config.pipeline.is_automatic)
    bad_input("--elastic and --parallel {} cannot be used together: a lost stage has variables that no other has",
              options.parallel);
  if (config.shard_optimizer)
    bad_input("--elastic and --shard-optimizer cannot be used together: a lost worker has state that no other has");
  if (config.sync_batch_norm)
    bad_input("--elastic and --sync-batch-norm cannot be used together: forward would wait for a lost worker");
  if (config.check_replicas > 0)
    bad_input("--elastic and --check-replicas cannot be used together: a loss between steps would end the job");
  if (config.gpu_sums == GpuSums::always || config.all_reduce == comm::Algorithm::library)
    bad_input("--elastic and --all-reduce {} cannot be used together: the library does not go on without a worker",
              options.all_reduce);
}

}  // namespace

std::string_view to_string(VariableUpdate update) { return name_of(update, kUpdates); }

DistributionConfig resolve(const DistributionOptions& options, const comm::JobSize& job, bool forward_only) {
  StepOptions step;
  step.distribution = options;
  config::step_table().check(step);
  DistributionConfig config;
  config.workers = job.workers;
  config.servers = job.servers;
  config.update = parse_update(options, job, forward_only);
  config.bucket_bytes = parse_bucket(options.bucket_mb);
  config.wire = comm::parse_wire(options.gradient_precision);
  config.overlap = options.overlap == "on";
  resolve_all_reduce(options, config);
  config.sync_batch_norm = options.sync_batch_norm;
  config.shard_optimizer = options.shard_optimizer;
  config.check_replicas = options.check_replicas;
  config.comm_timeout = options.comm_timeout;
  config.asynchronous = options.asynchronous || options.staleness.has_value();
  if (options.staleness) config.staleness = static_cast<int>(*options.staleness);
  config.backup_workers = static_cast<int>(options.backup_workers);
  check_update(config, forward_only);
  if (config.uses_servers()) {
    if (!options.placement.empty()) config.placement = ps::parse_strategy(options.placement);
    check_servers(options, config);
  } else {
    check_without_servers(step);
  }
  resolve_network_file(options, config);
  check_batch_norm(config);
  check_shards(config, forward_only);
  config.pipeline = resolve_pipeline(options, job.workers);
  parse_elastic(options.elastic, config);
  check_elastic(options, config);
  return config;
}

void add_json(const DistributionConfig& config, Json& json) {
  json["variable_update"] = to_string(config.update);
  json["workers"] = config.workers;
  json["all_reduce"] = config.gpu_sums == GpuSums::always ? kNccl : comm::to_string(config.all_reduce);
  json["network_file"] = config.network_file;
  json["bucket_mb"] = config.bucket_bytes == 0
                          ? Json("auto")
                          : Json(static_cast<double>(config.bucket_bytes) / static_cast<double>(kMegabyte));
  json["servers"] = config.servers;
  if (config.is_elastic()) json["elastic"] = fmt::format("{}:{}", config.least_workers, config.most_workers);
  json["parallel"] = config.pipeline.text();
  if (config.pipeline.is_used()) {
    if (!config.pipeline.cuts.empty()) json["cuts"] = config.pipeline.cuts;
    json["micro_batches"] = config.pipeline.micro_batches;
    json["schedule"] = to_string(config.pipeline.kind);
  }
  if (!config.uses_servers()) return;
  json["async"] = config.asynchronous;
  json["placement"] = ps::to_string(config.placement);
}

std::int64_t bucket_bytes_for(const DistributionConfig& config, std::int64_t gradient_bytes) {
  if (config.bucket_bytes > 0) return config.bucket_bytes;
  constexpr std::int64_t kBuckets = 16;
  return std::clamp(gradient_bytes / kBuckets, kMegabyte, 25 * kMegabyte);
}

}  // namespace trireme::train
