// Lines on their way to a log that may be slow, or stand still because nobody reads it: the transport's threads must
// not. Made by the world.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace trireme::comm::rpc {

class Journal {
 public:
  using Log = std::function<void(const std::string&)>;

  explicit Journal(Log log) : log_(std::move(log)) {
    if (log_) thread_ = std::thread([this] { pass_on(); });
  }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;
  // Returns when all lines are out.
  ~Journal() {
    if (!log_) return;
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  // Never waits; what is too much while the log stands still is dropped.
  void write(const std::string& line) {
    {
      const std::lock_guard lock(mutex_);
      if (lines_.size() < kMostLines) lines_.push_back(line);
    }
    changed_.notify_one();
  }

 private:
  static constexpr std::size_t kMostLines = 1000;

  void pass_on() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return !lines_.empty() || is_closed_; });
      if (lines_.empty()) return;
      const std::string line = std::move(lines_.front());
      lines_.pop_front();
      lock.unlock();
      log_(line);
      lock.lock();
    }
  }

  const Log log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool is_closed_ = false;
  std::thread thread_;
};

}  // namespace trireme::comm::rpc
