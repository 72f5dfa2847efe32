// Wakes the one thread that waits for transfers of a communicator. Rung by the transport's threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace trireme::comm::rpc {

class Bell {
 public:
  void ring() {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      ++rings_;
      wake = asleep_;
    }
    if (wake) changed_.notify_one();
  }

  // Returns at once when it has rung since the last call, because what the caller looked at in between may be old.
  void wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    asleep_ = true;
    changed_.wait_for(lock, longest, [&] { return rings_ != heard_; });
    asleep_ = false;
    heard_ = rings_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t rings_ = 0, heard_ = 0;
  bool asleep_ = false;
};

}  // namespace trireme::comm::rpc
