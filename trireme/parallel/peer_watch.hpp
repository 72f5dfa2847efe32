// Which workers of a pipeline make progress. A stage can wait long for one that works, or for one that only waits
// itself. So each worker tells the others now and then how far it is and whether it waits: a wait that has reached the
// timeout goes on while all others work or wait, and otherwise fails with the name of the worker that does neither,
// however far away in the pipeline. Made by the worker; used by PipelineLink and PipelineSync.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::parallel {

class PeerWatch {
 public:
  // Collective, like the end in good order. start_thread: called first on its thread.
  PeerWatch(comm::Communicator& workers, std::chrono::duration<double> timeout,
            std::function<void()> start_thread = {});
  ~PeerWatch();

  void count() { progress_.fetch_add(1, std::memory_order_relaxed); }  // this worker has done something
  class Waiting {                                                      // while it exists, this worker waits for others
   public:
    explicit Waiting(PeerWatch* watch) : watch_(watch) { set(true); }  // null: does nothing
    ~Waiting() { set(false); }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    void set(bool waits) {
      if (watch_ == nullptr) return;
      watch_->waits_.store(waits, std::memory_order_relaxed);
      watch_->count();
    }
    PeerWatch* watch_;
  };

  comm::Communicator::Judge judge() {
    return [this] { return culprit(); };
  }

 private:
  struct Status {
    std::uint32_t progress = 0;
    bool waits = false, ends = false;
  };
  struct Peer {
    Status told, heard;
    comm::Transfer send = {}, receive = {};
    std::uint32_t progress = 0;
    SteadyClock::time_point news = SteadyClock::now();  // when it last worked or waited, as far as it has said
    SteadyClock::time_point heard_at = news;            // when it last said anything
    bool is_over = false;                               // has ended and knows that this one has, or is lost
  };
  void work() noexcept;
  void exchange_all();
  void exchange(int rank, Peer& peer);
  void excuse_pause();
  std::string culprit();

  const std::chrono::duration<double> timeout_;
  const SteadyClock::duration period_;
  const int exceptions_ = std::uncaught_exceptions();
  std::function<void()> start_thread_;
  std::atomic<std::uint32_t> progress_{0};
  std::atomic<bool> waits_{false};

  std::mutex mutex_;  // of all that follows
  std::condition_variable wake_;
  std::vector<Peer> peers_;  // by rank; the own one unused
  std::unique_ptr<comm::Communicator> communicator_;
  std::uint32_t own_progress_ = 0;
  SteadyClock::time_point last_look_ = SteadyClock::now();
  SteadyClock::time_point last_progress_ = last_look_;  // of anybody
  bool ends_ = false, gives_up_ = false;
  std::thread thread_;
};

}  // namespace trireme::parallel
