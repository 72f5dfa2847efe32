// How workers train together, as DistributionOptions were resolved. Part of StepConfig; the launcher resolves it too,
// to find mistakes before anything starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/base/json.hpp"
#include "trireme/comm/all_reducer.hpp"
#include "trireme/comm/job_size.hpp"
#include "trireme/ps/placement.hpp"
#include "trireme/train/options.hpp"

namespace trireme::train {

enum class VariableUpdate : std::uint8_t {
  independent,             // workers exchange nothing: the ceiling
  all_reduce,              // every worker has all variables, gradients are averaged
  parameter_server,        // servers have the variables: workers pull them and push gradients
  distributed_replicated,  // every worker has all variables, updated with what servers have summed
};

// Whether GPUs sum gradients themselves, by NCCL: where each worker has one of its own; or in any case, even for one
// worker; or not, and they go through the hosts' memory.
enum class GpuSums : std::uint8_t { automatic, always, never };

struct DistributionConfig {
  int workers = 1;
  int servers = 0;
  VariableUpdate update = VariableUpdate::independent;
  comm::Algorithm all_reduce = comm::Algorithm::automatic;
  GpuSums gpu_sums = GpuSums::automatic;
  std::string network_file = {};    // measured figures, by which `automatic` chooses; empty: the usual ones
  bool network_file_given = false;  // and so has to be there
  std::int64_t bucket_bytes = 0;    // 0: from the size of the network
  comm::Wire wire = comm::Wire::fp32;
  bool overlap = true;
  bool sync_batch_norm = false;
  std::int64_t check_replicas = 0;    // compare the replicas after every so many steps; 0: at the end only
  double comm_timeout = 60;           // seconds
  bool asynchronous = false;          // servers apply each worker's gradients as they come
  std::optional<int> staleness = {};  // asynchronous: steps that a worker may be ahead of the slowest; nothing: any
  int backup_workers = 0;             // synchronous: servers take the gradients of the first workers - this
  ps::Strategy placement = ps::Strategy::split;  // which server has which variable: all carry the same bytes

  bool uses_servers() const {
    return update == VariableUpdate::parameter_server || update == VariableUpdate::distributed_replicated;
  }
  // The workers train in lock-step: one update with the mean of their gradients per step.
  bool is_synchronous() const {
    const bool all_reduces = update == VariableUpdate::all_reduce && (workers > 1 || gpu_sums == GpuSums::always);
    return !asynchronous && (uses_servers() || all_reduces);
  }
  // All-reduce is chosen by what its cost is thought to be.
  bool chooses_all_reduce() const {
    return workers > 1 && update == VariableUpdate::all_reduce && all_reduce == comm::Algorithm::automatic &&
           gpu_sums != GpuSums::always;
  }
  // The others can go on where a worker is lost.
  bool survives_lost_workers() const { return asynchronous || backup_workers > 0; }
};

// Throws Error(bad_input) that names the option, what was given and what is legal.
DistributionConfig resolve(const DistributionOptions& options, const comm::JobSize& job, bool forward_only);

void add_json(const DistributionConfig& config, Json& json);

// Bytes of a bucket for gradients of so many bytes: enough buckets that most of them are under way during backward,
// none so small that starting it costs more than moving it.
std::int64_t bucket_bytes_for(const DistributionConfig& config, std::int64_t gradient_bytes);

std::string_view to_string(VariableUpdate update);

}  // namespace trireme::train
