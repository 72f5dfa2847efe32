// Checks that a plan fits in memory before kernels are timed and memory is allocated; otherwise the system could kill
// the process mid-run. Used by Worker and `trireme eval`. GPUs report themselves what does not fit (OutOfMemory).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

// Of one worker, in bytes.
struct MemoryNeed {
  double activations = 0;  // including scratch memory
  double variables = 0;    // including gradients, optimizer state and other copies
  double batches = 0;      // input batches prepared ahead
  double cache = 0;        // of samples

  double with_batch() const { return activations + batches; }  // grows with the batch
  double total() const { return with_batch() + variables + cache; }
  MemoryNeed& operator+=(const MemoryNeed& other);
};

// The workers of one host and the memory it has for them.
struct HostMemory {
  std::string host;
  int workers = 1;
  perf::FreeMemory free = {};

  double of_each() const { return static_cast<double>(free.bytes) / workers; }
};

// Collective: all hosts of the workers. Everyone reads the free memory before anyone allocates. per_worker: bytes that
// the user allows each.
std::vector<HostMemory> host_memories(comm::Communicator& workers, std::optional<double> per_worker = {});

// From the plan, with untimed kernels. Of a pipeline, that of the stage which needs most.
MemoryNeed planned_memory(const StepConfig& config);

// Checks, per host, the programs a worker holds at once, the step first. Plans them (kernels untimed) only if they
// might not fit with separate memory per result. Error(bad_input) says what is needed, what is there and what to do.
// Returns warnings if they fit only by swapping.
std::vector<std::string> check_memory(const std::vector<StepConfig>& programs, const std::vector<HostMemory>& hosts);

// Its last part: empty if workers with this need each fit, of which `beside` is for other programs than the step.
std::string check_memory(const MemoryNeed& need, const HostMemory& memory, const StepConfig& step, double beside = 0);

}  // namespace trireme::train
