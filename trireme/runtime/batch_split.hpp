// A step over a batch that is split over groups of cores. Each group runs a copy of the program, with memory of its
// own, on its share of the samples; the groups use the same variables, add up their gradients in shared memory, and
// meet only where samples mix: in batch statistics and before updates. The result is that of the whole batch in one
// program. Faster than one program over all cores where layers are many and small: there are fewer points where all
// cores wait for the last, and what a core has computed stays in its cache. Slower where weights are large: every group
// reads all of them. Made by Session::prepare_split.
//
// With statistics of its own, each group normalises with the mean and variance of its samples, as separate processes
// would: the groups meet before updates only, and running statistics are those of the first.
//
// The graph is built for one group's share of the batch, and its losses and metrics are means over samples. The caller
// sets each group's inputs and sample_offset. Updates other than of gradients (running averages, assignments) take the
// first group's value.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trireme/runtime/executable.hpp"
#include "trireme/runtime/group_threads.hpp"

namespace trireme {

// Groups meet at instructions: their programs must have the same ones.
bool same_instructions(const Program& a, const Program& b);

class BatchSplit {
 public:
  // One program per group, all compiled from the same graph. A single one may have an inter-op pool instead of threads.
  BatchSplit(std::vector<Program> programs, VariableStore& store, std::uint64_t seed, bool own_statistics,
             const ReplicaPlace& replica, InterOpPool* pool, GroupThreads* threads);

  int groups() const { return static_cast<int>(executables_.size()); }
  Executable& group(int index) { return *executables_[index]; }
  const Executable& group(int index) const { return *executables_[index]; }

  void run();
  // See Executable::set_exchange(): of all groups together.
  void set_exchange(GradientExchange* exchange, const GradientOptions& options = {});
  void forget_exchange() noexcept {
    for (const auto& executable : executables_) executable->forget_exchange();
  }
  // Mean of a scalar fetch over the groups.
  double mean_output(int fetch) const;

 private:
  GroupThreads* threads_;
  AlignedMemory shared_;
  std::vector<std::unique_ptr<Executable>> executables_;
  std::function<void(int)> run_group_;
};

}  // namespace trireme
