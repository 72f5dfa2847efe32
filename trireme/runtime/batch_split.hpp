// A step over a batch split over groups of cores. Each group runs a copy of the program on its share of the samples;
// they share variables, sum gradients in shared memory, and synchronize only in batch statistics and before updates.
// The result is that of the whole batch. Faster with many small layers (fewer waits of all cores, better cache use),
// slower with large weights, which every group reads. Made by Session::prepare_split.
//
// With own statistics, each group normalizes with its own mean and variance, as separate processes would, and running
// statistics are the first group's.
//
// The graph is for one group's share; losses and metrics are means over samples. The caller sets each group's inputs
// and sample_offset. Other updates than of gradients (running averages, assignments) use the first group's value.
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

// One thread per group of cores, for the life of a session. The caller is the first.
class GroupThreads {
 public:
  // start(group) is called first on each thread: it sets the thread's share of cores.
  GroupThreads(int groups, std::function<void(int)> start);
  ~GroupThreads();
  GroupThreads(const GroupThreads&) = delete;
  GroupThreads& operator=(const GroupThreads&) = delete;

  int groups() const { return static_cast<int>(errors_.size()); }
  Barrier& barrier() { return barrier_; }
  // Calls body(group) on all threads and returns when all have ended. If one throws, the others are released from the
  // barrier and the first error is rethrown here; the threads are unusable afterwards.
  void run(const std::function<void(int)>& body);

 private:
  void work(int group, const std::function<void(int)>& start);
  void run_one(int group, const std::function<void(int)>& body) noexcept;
  void stop() noexcept;

  Barrier barrier_;
  std::vector<std::exception_ptr> errors_;  // [group]
  const std::function<void(int)>* body_ = nullptr;
  std::atomic<std::uint32_t> round_{0};    // changes when there is something to run
  std::atomic<std::uint32_t> running_{0};  // threads that have not finished it
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

// Groups synchronize at instructions, so their programs must have the same ones.
bool same_instructions(const Program& a, const Program& b);

class BatchSplit {
 public:
  // One program per group, all from the same graph. A single one may have an inter-op pool instead of threads.
  BatchSplit(std::vector<Program> programs, VariableStore& store, std::uint64_t seed, bool own_statistics,
             const ReplicaPlace& replica, InterOpPool* pool, GroupThreads* threads);

  int groups() const { return static_cast<int>(executables_.size()); }
  Executable& group(int index) { return *executables_[index]; }
  const Executable& group(int index) const { return *executables_[index]; }

  void run();
  // See Executable::set_exchange(); for all groups together.
  void set_exchange(GradientExchange* exchange, const GradientOptions& options = {});
  void forget_exchange() noexcept {
    for (const auto& executable : executables_) executable->forget_exchange();
  }
  double mean_output(int fetch) const;  // mean of a scalar fetch over the groups and micro-batches

 private:
  GroupThreads* threads_;
  AlignedMemory shared_;
  std::vector<std::unique_ptr<Executable>> executables_;
  std::function<void(int)> run_group_;
};

}  // namespace trireme
