// What a plan asks of a backend, and what the backend answers: for each operation a kernel, the formats that it reads
// and writes, its scratch memory and its name. Implemented in backend/reference, backend/onednn and backend/cuda.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/base/barrier.hpp"
#include "trireme/graph/graph.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/plan/compute_device.hpp"
#include "trireme/plan/layout.hpp"

namespace trireme {

// Exchanges batch statistics with replicas of the program in other processes. Implemented by parallel/replicas.cpp.
class ReplicaStatistics {
 public:
  virtual ~ReplicaStatistics() = default;
  // One block of this many bytes per replica. This replica's is filled before the call, all are after it. Called inside
  // parallel regions, which no exception may leave: what went wrong is kept for check().
  virtual void gather(std::span<void* const> blocks, std::int64_t bytes) noexcept = 0;
  // After each kernel: throws what went wrong.
  virtual void check() const = 0;
};

// Values that change from run to run and that kernels may read.
struct RunContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          // updates of the variables done before this run
  std::int64_t sample_offset = 0;  // of this program's first sample in the global batch (dropout)
  // If a batch is split over groups of cores, each group runs a copy of the program on its share of the samples; see
  // runtime/batch_split.hpp.
  int group = 0;
  int groups = 1;
  // The number of groups, or of replicas, over whose samples batch statistics are taken, and which of them this is; 1
  // if each has its own.
  int statistics_groups = 1;
  int statistics_group = 0;
  Barrier* barrier = nullptr;             // of the groups; none if there is one
  ReplicaStatistics* replicas = nullptr;  // if statistics are taken over replicas
  // Where this group's waits for the others are recorded; null: there is no trace.
  perf::Track* track = nullptr;
  std::int32_t barrier_label = 0;
  // Waits for the other groups. Called by one thread of a kernel.
  void barrier_wait() const {
    if (barrier == nullptr) return;
    const perf::ScopedSpan span(track, barrier_label);
    barrier->arrive_and_wait();
  }
  // Waits until the statistics of all are there: blocks are KernelMemory::shared.
  void share_statistics(std::span<void* const> blocks, std::int64_t bytes) const {
    replicas != nullptr ? replicas->gather(blocks, bytes) : barrier_wait();
  }
};

// Memory of one kernel, fixed when the program is bound. An update has no outputs: it writes its variable inputs.
struct KernelMemory {
  std::vector<void*> inputs;
  std::vector<void*> outputs;
  void* scratch = nullptr;
  // [statistics group]: KernelChoice::shared_bytes, visible to all groups and used for nothing else.
  std::vector<void*> shared;
  // ApplyGradients: the gradient of each pair in every group; [pair][group]. The update takes their mean.
  std::vector<std::vector<const float*>> gradients;
  // ApplyGradients: arrays of state of each (variable, gradient) pair; [pair][state].
  std::vector<std::vector<float*>> optimizer_state;
  // ApplyGradients: the shadow of each pair's variable (see Backend::shadow_type), or nullptr. Written with the
  // variable.
  std::vector<void*> shadows;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void bind(const KernelMemory& memory) = 0;
  // Allocates nothing; throws only if the library that it calls fails.
  virtual void run(const RunContext& context) = 0;
};

// An operation that needs a kernel. If the layout of an input is still open (a variable that no kernel has claimed),
// input_open is true and inputs[i].layout is plain. output_wish is set if a consumer needs a certain layout (the
// gradient of a variable must have the variable's); a kernel that can write it should.
struct KernelRequest {
  const Node& node;
  std::vector<TensorDesc> inputs;
  std::vector<bool> input_open;
  std::vector<const Layout*> output_wish;  // nullptr: none
  DataFormat data_format = DataFormat::automatic;
  bool training = true;  // false: nothing in the program needs backward
  Precision precision = Precision::fp32;
};

struct KernelChoice {
  std::vector<Format> inputs;  // what the kernel reads; the plan reorders an input that is stored differently
  std::vector<Format> outputs;
  // The layout to keep an open input in, by position, if that is not the one that the kernel reads: it reads a copy of
  // another type anyway.
  std::map<int, Layout> kept;
  std::int64_t scratch_bytes = 0;
  std::int64_t shared_bytes = 0;  // that a group shares with the others: see KernelMemory::shared
  std::vector<std::pair<int, int>>
      in_place;                // (input, output) that may be the same memory if the input is not needed later
  std::string implementation;  // for --plan and --profile: "jit:avx512_core", "own:avx512", "plain loops"
  std::unique_ptr<Kernel> kernel;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual ComputeDevice& device() const { return host_device(); }
  // Whether the kernels that mix samples (batch statistics, updates) can cooperate with those of other groups.
  virtual bool splits_batches() const { return false; }
  // Whether it has kernels that are faster in a precision on this machine.
  virtual bool is_fast_in(Precision precision) const { return precision == Precision::fp32; }
  // The type that kernels read variables in. If it is not f32, each trained variable has a shadow: its value in this
  // type and in the variable's layout, which updates write too, so that no step has to convert.
  virtual DataType shadow_type(Precision) const { return DataType::f32; }
  // Whether BatchNormBackward should compute the mask of its activation from src, if it can, rather than read dst: less
  // to read, more to compute.
  virtual bool masks_from_src() const { return false; }
  virtual KernelChoice choose(const KernelRequest& request) const = 0;
  // Copies between two formats of one tensor.
  virtual KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const = 0;
};

}  // namespace trireme
