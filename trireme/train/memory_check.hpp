// Checks that a plan fits in memory before kernels are timed and memory is allocated; otherwise the system could kill
// the process mid-run. Used by Worker, by --parallel auto and `trireme eval`. GPUs report themselves what does not fit
// (OutOfMemory).
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
  double values = 0;       // of variables
  double gradients = 0;    // with their sums
  double state = 0;        // of the optimizer
  double batches = 0;      // input batches prepared ahead
  double cache = 0;        // of samples
  double copies = 0;       // of values and state: brought together, or being saved

  double variables() const { return values + gradients + state; }
  double with_batch() const { return activations + batches; }  // grows with the batch
  double total() const { return with_batch() + variables() + cache + copies; }
  MemoryNeed& operator+=(const MemoryNeed& other);
};

// What the workers hold at once.
struct MemoryUse {
  StepConfig step = {};
  std::vector<StepConfig> beside = {};  // other programs, such as evaluation
  bool beside_all = true;               // each worker has these; of a pipeline, only the first one has
  bool saves = false;                   // checkpoints, which the first worker writes
};

// The workers of one host and the memory it has for them.
struct HostMemory {
  std::string host;
  std::vector<int> ranks = {0};
  perf::FreeMemory free = {};

  int workers() const { return static_cast<int>(ranks.size()); }
  double of_each() const { return static_cast<double>(free.bytes) / workers(); }
  bool is_known() const;  // the system says what there is
  // Otherwise each may have its part, and no more.
  bool is_shared() const;
  // Whether workers with these needs, by rank, fit. All do if it is not known.
  bool has_room_for(const std::vector<MemoryNeed>& needs, bool with_swap = false) const;
};

// Collective: all hosts of the workers. Everyone reads the free memory before anyone allocates. per_worker: bytes that
// the user allows each.
std::vector<HostMemory> host_memories(comm::Communicator& workers, std::optional<double> per_worker = {});

MemoryNeed need_of(const StepConfig& config, const MemorySummary& memory);  // of a worker with this program

// [rank], from the plan with untimed kernels. beside: what the programs beside need, if it is known.
std::vector<MemoryNeed> planned_memory(const MemoryUse& use);
std::vector<MemoryNeed> planned_memory(const MemoryUse& use, const MemoryNeed& beside);
MemoryNeed planned_beside(const MemoryUse& use);
const MemoryNeed& largest(const std::vector<MemoryNeed>& needs);

// Even with separate memory per result, which is quick to compute.
bool fits_clearly(const MemoryUse& use, const std::vector<HostMemory>& hosts);
// Plans (kernels untimed) only if that is not so.
bool fits(const MemoryUse& use, const std::vector<HostMemory>& hosts);

// Likewise. Error(bad_input) says what is needed, what is there and what to do. Returns warnings if it fits only by
// swapping.
std::vector<std::string> check_memory(const MemoryUse& use, const std::vector<HostMemory>& hosts);

// Its last part, of one host: empty if workers with these needs, by rank, fit.
std::string check_memory(const std::vector<MemoryNeed>& needs, const HostMemory& memory, const MemoryUse& use,
                         const MemoryNeed& beside = {});

}  // namespace trireme::train
