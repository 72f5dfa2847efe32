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

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/barrier.hpp"
#include "trireme/plan/schedule.hpp"
#include "trireme/runtime/executable.hpp"

namespace trireme {

// One thread per group of cores, kept for the life of a session. The caller is the first of them.
class GroupThreads {
 public:
  // start(group) is called first on each thread: it sets the thread's share of cores.
  GroupThreads(int groups, std::function<void(int)> start);
  ~GroupThreads();
  GroupThreads(const GroupThreads&) = delete;
  GroupThreads& operator=(const GroupThreads&) = delete;

  int groups() const { return static_cast<int>(errors_.size()); }
  Barrier& barrier() { return barrier_; }
  // Calls body(group) on all threads at the same time and returns when all have ended. If one throws, the others are
  // let go from the barrier, and the first error is thrown here; the threads are of no use afterwards.
  void run(const std::function<void(int)>& body);

 private:
  void work(int group, const std::function<void(int)>& start);
  void run_one(int group, const std::function<void(int)>& body) noexcept;
  void stop() noexcept;

  Barrier barrier_;
  std::vector<std::exception_ptr> errors_;  // [group]
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<std::uint32_t> round_{0};    // changes when there is something to run
  std::atomic<std::uint32_t> running_{0};  // threads that have not ended it
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

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
