// What a network's layers cost on the workers of a job, for --parallel auto: from steps with profiled operations.
#pragma once

#include <optional>

#include "trireme/comm/communicator.hpp"
#include "trireme/train/parallel_planner.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct ParallelMeasurement;  // choose_parallel.hpp

struct MeasuredNetwork {
  NetworkCosts costs;
  bool is_timed = false;  // otherwise by flops and bytes, since not even one image fits
  bool has_batch_norm = false;
};

// Collective: means over the workers. memory: that each may use.
MeasuredNetwork measure_network(const ParallelMeasurement& measurement, std::optional<double> memory,
                                comm::Communicator& workers);

// The costs of a network that was measured without recomputation, roughly.
NetworkCosts with_recomputation(NetworkCosts costs, StepConfig config, Recompute recompute);

}  // namespace trireme::train
