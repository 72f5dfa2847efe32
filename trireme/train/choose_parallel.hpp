// --parallel auto: times the network's operations and the links of this job, and takes the fastest plan that fits the
// memory of each worker. Used by Worker.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/backend/tuner.hpp"
#include "trireme/perf/threads.hpp"
#include "trireme/train/memory_check.hpp"
#include "trireme/train/parallel_planner.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct ParallelChoice {
  std::vector<ParallelPlan> plans;  // considered; data parallelism first
  std::size_t chosen = 0;
  comm::CostModel links;
  std::string warning = {};  // on the first worker
  bool is_timed = false;     // otherwise by flops and bytes, since not even one image fits
};

struct ParallelMeasurement {
  const StepConfig& config;  // of which the plan is to be chosen
  const perf::ThreadPlan& threads;
  const TuningOptions& tuning;
  const std::vector<HostMemory>& hosts;
  const MemoryUse& memory;  // of which the step is not planned yet
  // Collective: compiles on the first worker, which times kernels, then on the others.
  std::function<void(const std::function<void()>& compile)> compile_in_turn;
};

// Collective. Error(bad_input) if no plan fits.
ParallelChoice choose_parallel(const ParallelMeasurement& measurement, comm::Communicator& workers);

}  // namespace trireme::train
