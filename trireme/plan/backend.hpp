// The interface between plan and backend: for each operation a kernel, its input and output formats, scratch memory and
// name. Implemented in backend/reference, backend/onednn and backend/cuda.
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

// Exchanges batch statistics with replicas in other processes. Implemented by parallel/replicas.cpp.
class ReplicaStatistics {
 public:
  virtual ~ReplicaStatistics() = default;
  // One block of this many bytes per replica; this replica's is filled before the call, all are after it. Called inside
  // parallel regions, which no exception may leave: errors are kept for check().
  virtual void gather(std::span<void* const> blocks, std::int64_t bytes) noexcept = 0;
  virtual void check() const = 0;  // called after each kernel: throws what went wrong
};

struct RunContext {  // per-run values that kernels may read
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          // updates of the variables before this run
  std::int64_t sample_offset = 0;  // of this program's first sample in the global batch (dropout)
  // If a batch is split over groups of cores, each runs a copy of the program on its share (runtime/batch_split.hpp).
  int group = 0;
  int groups = 1;
  // Number of groups or replicas whose samples batch statistics span, and the index of this one; 1 if each has its own.
  int statistics_groups = 1;
  int statistics_group = 0;
  Barrier* barrier = nullptr;             // of the groups; null if there is one
  ReplicaStatistics* replicas = nullptr;  // if statistics span replicas
  // Records this group's waits for the others; null: no tracing.
  perf::Track* track = nullptr;
  std::int32_t barrier_label = 0;
  // Waits for the other groups. Called by one thread of a kernel.
  void barrier_wait() const {
    if (barrier == nullptr) return;
    const perf::ScopedSpan span(track, barrier_label);
    barrier->arrive_and_wait();
  }
  // Waits until the statistics of all are available: blocks are KernelMemory::shared.
  void share_statistics(std::span<void* const> blocks, std::int64_t bytes) const {
    replicas != nullptr ? replicas->gather(blocks, bytes) : barrier_wait();
  }
};

// Memory of one kernel, fixed when the program is bound. An update has no outputs: it writes its variable inputs.
struct KernelMemory {
  std::vector<void*> inputs;
  std::vector<void*> outputs;
  void* scratch = nullptr;
  std::int64_t first_sample = 0;  // of a micro-batch, in the run (dropout)
  // [statistics group]: KernelChoice::shared_bytes, visible to all groups and used for nothing else.
  std::vector<void*> shared;
  // ApplyGradients: [pair][group], the gradient of each pair in every group. The update takes their mean.
  std::vector<std::vector<const float*>> gradients;
  // ApplyGradients: [pair][state], the state arrays of each (variable, gradient) pair.
  std::vector<std::vector<float*>> optimizer_state;
  // ApplyGradients: the shadow of each pair's variable (Backend::shadow_type) or nullptr; written with the variable.
  std::vector<void*> shadows;
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual std::unique_ptr<Kernel> another() const = 0;  // not bound yet; for another micro-batch
  virtual void bind(const KernelMemory& memory) = 0;
  virtual void run(const RunContext& context) = 0;  // does not allocate; throws only if the underlying library fails
};

// An operation that needs a kernel. input_open means that the input's layout is undecided (a variable that no kernel
// has claimed) and inputs[i].layout is plain. output_wish is a layout that a consumer needs (a variable's gradient must
// have the variable's layout); a kernel that can write it should.
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
  // The layout to keep an open input in, by position, if the kernel reads a copy of another type anyway.
  std::map<int, Layout> kept;
  std::int64_t scratch_bytes = 0;
  std::int64_t shared_bytes = 0;  // shared with the other groups: see KernelMemory::shared
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
  // Whether kernels that mix samples (batch statistics, updates) can cooperate with other groups.
  virtual bool splits_batches() const { return false; }
  // Whether it has kernels that are faster in this precision on this machine.
  virtual bool is_fast_in(Precision precision) const { return precision == Precision::fp32; }
  // The type in which kernels read variables. If not f32, each trained variable has a shadow: its value in this type
  // and the variable's layout, written by updates, so that no step has to convert.
  virtual DataType shadow_type(Precision) const { return DataType::f32; }
  // Whether BatchNormBackward should, if it can, compute its activation's mask from src instead of reading dst.
  virtual bool masks_from_src() const { return false; }
  virtual KernelChoice choose(const KernelRequest& request) const = 0;
  // Copies between two formats of one tensor.
  virtual KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const = 0;
};

}  // namespace trireme
