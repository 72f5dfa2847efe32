// The sending half of the transport: streams to other tasks, each a connection of its own, that take parts from one
// queue per task. There are none to a task that nothing is sent to, one to a task that gets small messages, and several
// to one that gets tensors. Made by the world, used by its communicators.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace grpc {
class CompletionQueue;
}

namespace trireme::comm::rpc {

struct Caller;
struct SendContext;
class PeerQueue;

// A message under way whose memory gRPC reads: complete when all of it was written and nobody refers to it any more.
class PendingSend {
 public:
  explicit PendingSend(std::shared_ptr<Notifier> notifier) : notifier_(std::move(notifier)) {}

  void begin(int steps) { steps_left_.store(steps, std::memory_order_relaxed); }
  void finish(int steps = 1) {
    if (steps_left_.fetch_sub(steps, std::memory_order_acq_rel) == steps) notifier_->notify();
  }
  void fail() { has_failed_.store(true, std::memory_order_release); }
  bool is_complete() const { return steps_left_.load(std::memory_order_acquire) == 0; }
  bool has_failed() const { return has_failed_.load(std::memory_order_acquire); }

 private:
  std::shared_ptr<Notifier> notifier_;
  std::atomic<int> steps_left_{0};
  std::atomic<bool> has_failed_{false};
};

class Sender {
 public:
  // All live longer.
  Sender(const Caller& caller, Roster& roster);
  ~Sender();

  // The queue of the thread that sends, for the other calls that last; they must end before this does.
  grpc::CompletionQueue& queue();
  // The first stream to a task, if there is none yet: from then on its end is noticed here too.
  void open(int task);
  // Messages up to this size are copied, which is cheaper than keeping track of them: complete at once, they need no
  // Send. False: the task is gone.
  static constexpr std::size_t kCopiedBytes = 4096;
  [[nodiscard]] bool post(int task, const FrameHeader& header, std::span<const std::byte> data,
                          const std::shared_ptr<PendingSend>& send);
  // Returns when all tasks that are there have got everything and know that we leave, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Breaks off all streams; what was not sent has failed. Returns when gRPC has let go of the callers' memory. False:
  // it has not within this time, because a task that is stopped keeps a connection full.
  bool break_off(std::chrono::milliseconds longest);

 private:
  std::unique_ptr<SendContext> shared_;
  std::vector<std::unique_ptr<PeerQueue>> peers_;  // by task; most have no stream
  std::thread thread_;
};

}  // namespace trireme::comm::rpc
