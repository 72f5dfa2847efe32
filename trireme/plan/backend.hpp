// What a plan asks of a backend, and what a backend gives: for each operation a kernel, the formats it wants and gives,
// its scratch memory, and what it is called. Implemented in backend/reference and backend/onednn.
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

// Takes batch statistics to replicas of the program in other processes. Implemented by parallel/replicas.cpp.
class ReplicaStatistics {
 public:
  virtual ~ReplicaStatistics() = default;
  // One block of so many bytes per replica. This replica's is filled; all are afterwards. Called inside parallel
  // regions, which no exception may leave: what went wrong is kept for check().
  virtual void gather(std::span<void* const> blocks, std::int64_t bytes) noexcept = 0;
  // After each kernel: throws what went wrong.
  virtual void check() const = 0;
};

// Values that change from run to run and that kernels may read.
struct RunContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;          // updates of the variables done before this run
  std::int64_t sample_offset = 0;  // of this program's first sample in the global batch (dropout)
  // Where a batch is split over groups of cores, each group runs a copy of the program on its share of the samples; see
  // runtime/batch_split.hpp.
  int group = 0;
  int groups = 1;
  // Batch statistics are taken over the samples of so many groups, or of so many replicas, of which this is one; 1 if
  // each has its own.
  int statistics_groups = 1;
  int statistics_group = 0;
  Barrier* barrier = nullptr;             // of the groups; none if there is one
  ReplicaStatistics* replicas = nullptr;  // where statistics are over replicas
  // Where this group's waits for the others are recorded; none: nobody traces.
  perf::Track* track = nullptr;
  std::int32_t barrier_label = 0;
  // Waits for the other groups. In a kernel by one of its threads.
  void barrier_wait() const {
    if (barrier == nullptr) return;
    const perf::ScopedSpan span(track, barrier_label);
    barrier->arrive_and_wait();
  }
  // Waits until all have told their statistics: blocks are KernelMemory::shared.
  void share_statistics(std::span<void* const> blocks, std::int64_t bytes) const {
    replicas != nullptr ? replicas->gather(blocks, bytes) : barrier_wait();
  }
};

// Memory of one kernel, fixed when the program is bound. Outputs of an update are none: it writes its variable inputs.
struct KernelMemory {
  std::vector<void*> inputs;
  std::vector<void*> outputs;
  void* scratch = nullptr;
  // [statistics group]: KernelChoice::shared_bytes that all groups see and that nothing else uses.
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
  // Allocates nothing, throws only when the library below fails.
  virtual void run(const RunContext& context) = 0;
};

enum class DataFormat : std::uint8_t { automatic, nchw, nhwc };

// One operation to find a kernel for. Where the layout of an input is still open (a variable that no kernel has
// claimed), input_open is true and inputs[i].layout is plain. output_wish is set where a consumer needs a certain
// layout (the gradient of a variable must have the variable's); a kernel that can give it should.
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
  std::vector<Format> inputs;  // what the kernel reads; the plan reorders where it differs from what there is
  std::vector<Format> outputs;
  // The layout to keep an open input in, by position, where that is not the one that the kernel reads: it reads a copy
  // of another type anyway.
  std::map<int, Layout> kept;
  std::int64_t scratch_bytes = 0;
  std::int64_t shared_bytes = 0;  // what a group tells the others: see KernelMemory::shared
  std::vector<std::pair<int, int>>
      in_place;                // (input, output) that may be the same memory when the input is not needed later
  std::string implementation;  // for --plan and --profile: "jit:avx512_core", "own:avx512", "plain loops"
  std::unique_ptr<Kernel> kernel;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual ComputeDevice& device() const { return host_device(); }
  // Whether the kernels that mix samples (batch statistics, updates) work together with those of other groups.
  virtual bool splits_batches() const { return false; }
  // Whether it has kernels that are faster in a precision on this machine.
  virtual bool is_fast_in(Precision precision) const { return precision == Precision::fp32; }
  // Where kernels read variables in another type than f32: that type. Each trained variable has a shadow then, its
  // value in this type and in the variable's layout, which updates write too, so that no step has to convert.
  virtual DataType shadow_type(Precision) const { return DataType::f32; }
  // Whether BatchNormBackward should find the mask of its activation from src, where it can, rather than read dst:
  // less to read, more to compute.
  virtual bool masks_from_src() const { return false; }
  virtual KernelChoice choose(const KernelRequest& request) const = 0;
  // Copies between two formats of one tensor.
  virtual KernelChoice choose_reorder(const TensorDesc& from, const Format& to) const = 0;
};

}  // namespace trireme
