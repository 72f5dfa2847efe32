// How the workers of a benchmark train together: what a user writes, and what it was resolved to. Part of
// BenchmarkOptions and BenchmarkConfig.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trireme/comm/all_reducer.hpp"
#include "trireme/report/run_record.hpp"

namespace trireme::lab {

enum class VariableUpdate : std::uint8_t {
  independent,  // workers exchange nothing: the ceiling
  all_reduce,   // every worker has all variables, gradients are averaged
};

struct DistributionOptions {
  std::string variable_update = "auto";  // all_reduce where several workers train
  std::string all_reduce = "auto";
  std::string bucket_mb = "auto";
  std::string gradient_precision = "fp32";
  std::string overlap = "on";
  bool sync_batch_norm = false;
  std::int64_t check_replicas = 0;
  double comm_timeout = 60;
  bool baseline = false;
};

struct DistributionConfig {
  int workers = 1;
  VariableUpdate update = VariableUpdate::independent;
  comm::Algorithm all_reduce = comm::Algorithm::automatic;
  std::int64_t bucket_bytes = 0;  // 0: from the size of the network
  comm::Wire wire = comm::Wire::fp32;
  bool overlap = true;
  bool sync_batch_norm = false;
  std::int64_t check_replicas = 0;  // compare the replicas after every so many steps; 0: at the end only
  double comm_timeout = 60;         // seconds
  bool baseline = false;            // measure one worker alone, and workers that exchange nothing, in the same run

  bool is_synchronous() const { return update == VariableUpdate::all_reduce && workers > 1; }
};

// Throws Error(bad_input) that names the option, what was given and what is legal.
DistributionConfig resolve(const DistributionOptions& options, int workers, bool forward_only);

void add_json(const DistributionConfig& config, report::Json& json);

// Bytes of a bucket for gradients of so many bytes: enough buckets that most of them are under way during backward,
// none so small that starting it costs more than moving it.
std::int64_t bucket_bytes_for(const DistributionConfig& config, std::int64_t gradient_bytes);

std::string_view to_string(VariableUpdate update);

}  // namespace trireme::lab
