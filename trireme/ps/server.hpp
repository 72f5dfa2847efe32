// A parameter server: holds chunks of variables with their optimizer state, takes the workers' gradients, applies them,
// and gives out new values. It learns everything from its workers and knows no networks. One thread moves messages,
// others compute. Run by the tasks of the job "ps", over any Communicator; see protocol.hpp.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/base/clock.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/ps/messages.hpp"
#include "trireme/ps/shard.hpp"

namespace trireme::ps {

struct ServerOptions {
  int threads = 1;                            // that compute updates
  std::function<void()> start_thread = {};    // called first on each of them
  std::function<void(std::string)> log = {};  // what is worth a line: who was lost, that it goes on without
  perf::Recorder* recorder = nullptr;         // gets a span for each update while workers trace; none: nobody does
};

class Server {
 public:
  // The first `workers` ranks are the workers; the communicator is this object's alone while it lives.
  Server(comm::Communicator& communicator, int workers, ServerOptions options = {});
  ~Server();

  // Serves until all workers have left, or have been lost where that is allowed. Error(failed) that names the worker
  // where one is lost that cannot be done without, or takes too long.
  void run();
  // From any thread: run() ends with an Error within a moment.
  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    communicator_.interrupt();
  }
  // As JSON text, from any thread.
  std::string statistics() const;

 private:
  class UpdatePool;
  struct Worker {
    MessageReceiver inbox;
    MessageSender outbox;
    bool left = false;
  };
  void serve_all();
  void tell_workers(const std::string& reason);
  void receive_setup();
  void receive_initial_values();
  void name_spans();
  bool serve(int index);
  bool look_at_worker(int index);
  void obey(int index, const Header& header);
  void answer(int index, const Shard& shard, bool with_value);
  void answer_with_state(const Pull& pull, const Shard& shard);
  void advance(Shard& shard);
  void leave(int index);
  void rest(int index);
  void wake(int index);
  void lose(int index, const std::string& reason);
  void check_times();
  void publish();
  Shard& checked_shard(int index, const Header& header);
  std::string name_of(int index) const;
  std::string names_of(const std::vector<int>& workers) const;
  void log(const std::string& text) const;

  comm::Communicator& communicator_;
  ServerOptions options_;
  Setup setup_;
  Crowd crowd_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<UpdatePool> pool_;
  Counters counters_;
  SteadyClock::time_point next_check_;
  bool training_ended_ = false;  // a worker has said so
  bool ended_well_ = false;
  std::atomic<bool> stopping_{false};
  mutable std::mutex published_mutex_;
  std::string published_ = "{}";
};

}  // namespace trireme::ps
