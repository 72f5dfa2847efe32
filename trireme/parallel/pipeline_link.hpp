// Messages between the stages of a pipeline over a communicator. The thread that computes begins transfers; a thread of
// this object drives them meanwhile, as some transports make no progress by themselves.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/parallel/peer_watch.hpp"
#include "trireme/perf/recorder.hpp"
#include "trireme/runtime/stage_link.hpp"

namespace trireme::parallel {

class PipelineLink : public StageLink {
 public:
  struct Options {
    // A message that takes longer is an error, unless the watch sees that other stages make progress.
    std::chrono::duration<double> timeout = comm::Communicator::kDefaultTimeout;
    std::function<void()> start_thread = {};  // called first on the thread, to place it where it disturbs least
    perf::Recorder* recorder = nullptr;       // gets a span per message
    PeerWatch* watch = nullptr;
  };
  // Collective: all stages make one at the same time.
  PipelineLink(comm::Communicator& communicator, Options options);
  ~PipelineLink() override;  // in the middle of a step, abandons the transfers under way

  void open(std::vector<StageMessage> messages) override;
  void begin(int message) override;
  bool done(int message) override;
  void wait(int message) override;

 private:
  struct Line {  // of a trace: messages to a rank, or from it; each from the end of the one before
    perf::Track* track = nullptr;
    std::int64_t end = 0;
  };
  struct Message {
    StageMessage what;
    comm::Transfer transfer;
    bool is_active = false;
    Line* line = nullptr;  // null: no trace
    perf::Span span = {};
  };
  void add_label(Message& message);
  void add_span(const Message& message);
  void work() noexcept;
  bool poll();  // whether a transfer ended; with the lock
  void check() const;

  std::unique_ptr<comm::Communicator> communicator_;
  Options options_;
  std::map<std::string, Line> lines_;  // by name
  std::vector<Message> messages_;

  std::mutex mutex_;         // of the communicator, the messages and what is active
  std::vector<int> active_;  // messages
  std::atomic<int> active_count_{0};
  std::atomic<std::uint32_t> changes_{0};  // counts what was begun
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
  std::thread thread_;
};

}  // namespace trireme::parallel
