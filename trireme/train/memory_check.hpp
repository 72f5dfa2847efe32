// Whether a plan fits into the memory there is, found out before kernels are timed and memory is taken: otherwise the
// system would end the process in the middle of its work. Used by Worker and by `trireme eval`. GPUs say themselves
// what does not fit (OutOfMemory).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

// Of one worker, in bytes.
struct MemoryNeed {
  double activations = 0;  // with scratch memory
  double variables = 0;    // with gradients, the optimizer's state and other copies of them
  double batches = 0;      // of input, made ahead
  double cache = 0;        // of samples

  double with_batch() const { return activations + batches; }  // what grows with the batch
  double total() const { return with_batch() + variables + cache; }
  MemoryNeed& operator+=(const MemoryNeed& other);
};

// The workers of one host, and what it has for them.
struct HostMemory {
  std::string host;
  int workers = 1;
  perf::FreeMemory free = {};
};

// Collective: of all hosts that the workers run on. All see what is free before any of them takes some.
std::vector<HostMemory> host_memories(comm::Communicator& workers);

// Of the programs that a worker will have at the same time, the step first, on each of the hosts. They are planned,
// with kernels that are not timed, only if they might not fit if every result had memory of its own. Error(bad_input)
// with what is needed, what there is and what to do if they do not fit. Gives back warnings where they do with a part
// of them swapped to disk.
std::vector<std::string> check_memory(const std::vector<StepConfig>& programs, const std::vector<HostMemory>& hosts);

// The last part of it: empty if workers that need so much each fit.
std::string check_memory(const MemoryNeed& need, const HostMemory& memory, const StepConfig& step);

}  // namespace trireme::train
