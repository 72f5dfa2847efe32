// The threads of a server that compute: several chunks are updated at the same time while the server's own thread goes
// on with messages. Owned by Server.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "trireme/perf/recorder.hpp"
#include "trireme/ps/shard.hpp"

namespace trireme::ps {

class UpdatePool {
 public:
  // start_thread, where given, is called first on each thread. Updates leave spans where there is a recorder.
  UpdatePool(int threads, const std::function<void()>& start_thread, perf::Recorder* recorder = nullptr);
  ~UpdatePool();  // what has not begun is left undone

  void begin(Shard& shard);          // update() on one of the threads
  std::vector<Shard*> take_ended();  // those whose update() has returned since the last call
  bool is_busy() const { return under_way_ > 0; }

 private:
  void work(perf::Track* track);

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Shard*> waiting_;
  std::vector<Shard*> ended_;
  bool stopping_ = false;
  int under_way_ = 0;  // of the caller's knowledge
  std::vector<std::thread> threads_;
};

}  // namespace trireme::ps
