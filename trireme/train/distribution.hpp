// How workers train together, from DistributionOptions. Part of StepConfig; the launcher resolves it too, as a check.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/base/json.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/job_size.hpp"
#include "trireme/config/options.hpp"
#include "trireme/ps/placement.hpp"
#include "trireme/train/pipeline_config.hpp"

namespace trireme::train {

enum class VariableUpdate : std::uint8_t {
  independent,             // workers exchange nothing: the upper bound on speed
  all_reduce,              // every worker holds all variables; gradients are averaged
  parameter_server,        // servers hold the variables; workers pull them and push gradients
  distributed_replicated,  // every worker holds all variables and applies gradients summed by servers
};

// Whether NCCL sums gradients. automatic: if each worker has its own GPU; always: even for one; never: in host memory.
enum class GpuSums : std::uint8_t { automatic, always, never };

struct DistributionConfig {
  int workers = 1;
  int servers = 0;
  VariableUpdate update = VariableUpdate::independent;
  comm::Algorithm all_reduce = comm::Algorithm::automatic;
  GpuSums gpu_sums = GpuSums::automatic;
  std::string network_file = {};    // measured figures for choosing `automatic`; empty: built-in ones
  bool network_file_given = false;  // so it must exist
  std::int64_t bucket_bytes = 0;    // 0: derived from the network's size
  comm::Wire wire = comm::Wire::fp32;
  bool overlap = true;
  bool sync_batch_norm = false;
  bool shard_optimizer = false;
  int least_workers = 0, most_workers = 0;  // --elastic; 0: a lost worker ends the job
  std::int64_t check_replicas = 0;          // compare replicas every this many steps; 0: only at the end
  double comm_timeout = 60;                 // seconds
  bool asynchronous = false;                // servers apply each worker's gradients on arrival
  std::optional<int> staleness = {};  // asynchronous: maximum steps ahead of the slowest worker; nothing: no limit
  int backup_workers = 0;             // synchronous: servers use the first (workers - this) gradients
  ps::Strategy placement = ps::Strategy::split;  // assigns variables to servers; split: equal bytes
  PipelineConfig pipeline = {};

  bool uses_servers() const {
    return update == VariableUpdate::parameter_server || update == VariableUpdate::distributed_replicated;
  }
  // Workers run in lock step: one update per step with the mean of their gradients.
  bool is_synchronous() const {
    const bool all_reduces = update == VariableUpdate::all_reduce && (workers > 1 || gpu_sums == GpuSums::always);
    return !asynchronous && (uses_servers() || all_reduces);
  }
  // Into how many parts these replicas divide the optimizer's state.
  int state_shards(int replicas) const { return shard_optimizer ? replicas : 1; }
  // The all-reduce algorithm is chosen by estimated cost.
  bool chooses_all_reduce() const {
    return workers > 1 && update == VariableUpdate::all_reduce && all_reduce == comm::Algorithm::automatic &&
           gpu_sums != GpuSums::always;
  }
  // The others can continue if a worker is lost.
  bool survives_lost_workers() const { return asynchronous || backup_workers > 0 || is_elastic(); }
  bool is_elastic() const { return least_workers > 0; }
};

// Error(bad_input) names the option, the value given and what is legal.
DistributionConfig resolve(const DistributionOptions& options, const comm::JobSize& job, bool forward_only);

void add_json(const DistributionConfig& config, Json& json);

// Bucket size for these gradients: most should travel during backward, none cost more to start than to move.
std::int64_t bucket_bytes_for(const DistributionConfig& config, std::int64_t gradient_bytes);

std::string_view to_string(VariableUpdate update);

}  // namespace trireme::train
