// A parameter server: holds chunks of variables and optimizer state, applies the workers' gradients and returns new
// values. It learns everything from its workers and does not know the network. One thread moves messages, others
// compute. Run by "ps" tasks over any Communicator; see protocol.hpp.
#pragma once

#include <functional>
#include <memory>
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
  std::function<void(std::string)> log = {};  // notable events: a lost worker, continuing without it
  perf::Recorder* recorder = nullptr;         // gets a span per update while workers trace; null: no tracing
};

class Server {
 public:
  // The first `workers` ranks are the workers. Only this object may use the communicator meanwhile.
  Server(comm::Communicator& communicator, int workers, ServerOptions options = {});
  ~Server();

  // Serves until all workers have left or, if allowed, are lost. Error(failed) names a lost or late worker otherwise.
  void run();

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
  std::string statistics() const;  // JSON text
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
};

}  // namespace trireme::ps
