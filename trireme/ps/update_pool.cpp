#include "trireme/ps/update_pool.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::ps {

UpdatePool::UpdatePool(int threads, const std::function<void()>& start_thread, perf::Recorder* recorder) {
  for (int i = 0; i < std::max(1, threads); ++i) {
    perf::Track* const track = recorder == nullptr ? nullptr : &recorder->track(fmt::format("update thread {}", i));
    threads_.emplace_back([this, start_thread, track] {
      if (start_thread) start_thread();
      work(track);
    });
  }
}

UpdatePool::~UpdatePool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void UpdatePool::begin(Shard& shard) {
  ++under_way_;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(&shard);
  }
  wake_.notify_one();
}

std::vector<Shard*> UpdatePool::take_ended() {
  if (under_way_ == 0) return {};
  std::vector<Shard*> ended;
  {
    const std::lock_guard lock(mutex_);
    std::swap(ended, ended_);
  }
  under_way_ -= static_cast<int>(ended.size());
  return ended;
}

void UpdatePool::work(perf::Track* track) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
    if (stopping_) return;
    Shard* shard = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    {
      const perf::ScopedSpan span(track, shard->label);
      shard->update();
    }
    lock.lock();
    ended_.push_back(shard);
  }
}

}  // namespace trireme::ps
