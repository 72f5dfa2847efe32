// One thread per group of cores, kept for the life of a session. The caller is the first of them. Used by BatchSplit.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "trireme/base/barrier.hpp"

namespace trireme {

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

}  // namespace trireme
