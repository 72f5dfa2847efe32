#include "trireme/runtime/group_threads.hpp"

#include "trireme/base/error.hpp"

namespace trireme {

GroupThreads::GroupThreads(int groups, std::function<void(int)> start) : barrier_(groups), errors_(groups) {
  try {
    for (int group = 1; group < groups; ++group) {
      threads_.emplace_back([this, group, start] { work(group, start); });
    }
    // Last, so that the others do not inherit where this thread may run.
    run([&](int group) {
      if (group == 0 && start) start(0);
    });
  } catch (...) {
    stop();
    throw;
  }
}

GroupThreads::~GroupThreads() { stop(); }

void GroupThreads::stop() noexcept {
  stopping_.store(true, std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void GroupThreads::work(int group, const std::function<void(int)>& start) {
  std::uint32_t seen = 0;
  try {
    if (start) start(group);
  } catch (...) {
    errors_[group] = std::current_exception();
    barrier_.abandon();
  }
  while (true) {
    wait_for_change(round_, seen);
    ++seen;
    if (stopping_.load(std::memory_order_acquire)) return;
    run_one(group, *body_);
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) running_.notify_all();
  }
}

void GroupThreads::run_one(int group, const std::function<void(int)>& body) noexcept {
  std::exception_ptr& error = errors_[group];
  if (error) return;
  try {
    body(group);
  } catch (...) {
    error = std::current_exception();
    barrier_.abandon();
  }
}

void GroupThreads::run(const std::function<void(int)>& body) {
  body_ = &body;
  running_.store(static_cast<std::uint32_t>(threads_.size()), std::memory_order_release);
  round_.fetch_add(1, std::memory_order_release);
  round_.notify_all();
  run_one(0, body);
  for (std::uint32_t left = running_.load(std::memory_order_acquire); left != 0;
       left = running_.load(std::memory_order_acquire)) {
    wait_for_change(running_, left);
  }
  for (const std::exception_ptr& error : errors_) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace trireme
