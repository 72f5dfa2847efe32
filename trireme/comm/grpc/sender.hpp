// The sending half of the transport: streams to other tasks, each on its own connection, fed from one queue per task.
// None if nothing is sent, one for small messages, several for tensors. Made by the world.
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

// A message whose memory gRPC reads: complete when all of it is written and nothing refers to it.
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
  Sender(const Caller& caller, Roster& roster);  // all arguments must outlive this
  ~Sender();

  // The sending thread's queue, for other long-lived calls; they must end before this does.
  grpc::CompletionQueue& queue();
  // Opens the first stream to a task, if there is none; from then on this side also notices its end.
  void open(int task);
  // Messages up to this size are copied, complete at once and need no PendingSend. False if the task is gone.
  static constexpr std::size_t kCopiedBytes = 4096;
  [[nodiscard]] bool post(int task, const FrameHeader& header, std::span<const std::byte> data,
                          const std::shared_ptr<PendingSend>& send);
  // Unsent messages of contexts from `first` to before `last` fail. Returns when gRPC no longer refers to any caller's
  // memory; false if it still does after this time, because a stopped task keeps a connection full.
  [[nodiscard]] bool drop(int first, int last, std::chrono::milliseconds longest);
  void lose(int task, const std::string& reason);  // it is gone, as others know
  // Returns when all present tasks have received everything and know that we leave, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Breaks all streams; unsent messages fail. Returns like drop().
  bool break_off(std::chrono::milliseconds longest);

 private:
  bool wait_for_memory(std::chrono::steady_clock::time_point until) const;

  std::unique_ptr<SendContext> shared_;
  std::vector<std::unique_ptr<PeerQueue>> peers_;  // by task; most have no stream
  std::thread thread_;
};

}  // namespace trireme::comm::rpc
