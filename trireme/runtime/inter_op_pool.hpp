// Threads that run independent instructions of one program concurrently, such as Inception branches. Made by Session if
// there are several inter-op threads. For the dependencies see hazards().
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <vector>

#include "trireme/plan/schedule.hpp"

namespace trireme {

// For each step, the later ones that must wait for it: they read what it writes, or write what it reads or writes, by
// address, so that shared memory is covered. Transfers keep the schedule's order.
std::vector<std::vector<int>> hazards(const Program& program, const Schedule& schedule);

class InterOpPool {
 public:
  // on_start runs first on every thread and must not throw there; thread 0 is the caller of run().
  InterOpPool(int threads, std::function<void(int)> on_start);
  ~InterOpPool();

  int threads() const { return 1 + static_cast<int>(threads_.size()); }
  // Runs body(i, thread) for each item after its predecessors, lowest index first. Rethrows the first exception.
  void run(const std::vector<std::vector<int>>& successors, const std::vector<int>& predecessors,
           const std::function<void(int item, int thread)>& body);

 private:
  void work(int thread);
  void stop();

  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  const std::vector<std::vector<int>>* successors_ = nullptr;
  const std::function<void(int, int)>* body_ = nullptr;
  std::vector<int> waiting_for_;
  std::priority_queue<int, std::vector<int>, std::greater<>> ready_;
  int left_ = 0;  // items not finished
  int running_ = 0;
  std::exception_ptr error_;
  std::vector<std::thread> threads_;
};

}  // namespace trireme
