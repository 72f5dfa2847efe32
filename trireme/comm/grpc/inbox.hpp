// Receives one communicator's messages. The transport's thread delivers parts in any order, copying them straight to a
// posted receive or keeping them. The n-th receive for a task and tag matches the n-th message.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/grpc/frame.hpp"

namespace trireme::comm::rpc {

// Wakes the one thread that waits for a communicator's transfers. The transport's threads notify it.
class Notifier {
 public:
  void notify() {
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      ++notified_;
      wake = is_waiting_;
    }
    if (wake) changed_.notify_one();
  }

  // Returns at once if notified since the last call, because what the caller checked in between may be stale.
  void wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    is_waiting_ = true;
    changed_.wait_for(lock, longest, [&] { return notified_ != seen_; });
    is_waiting_ = false;
    seen_ = notified_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t notified_ = 0, seen_ = 0;
  bool is_waiting_ = false;
};

class Payload {  // a part as received, in gRPC's memory
 public:
  virtual ~Payload() = default;
  virtual std::size_t size() const = 0;
  virtual void copy_to(std::byte* target) const = 0;
};

struct PendingReceive {
  int from = 0;
  int tag = 0;
  std::uint64_t sequence = 0;
  std::span<std::byte> data;
  std::uint64_t came_bytes = 0;  // valid once complete
  std::atomic<bool> is_complete{false};
};

class Inbox {
 public:
  std::shared_ptr<PendingReceive> post(int from, int tag, std::span<std::byte> data);
  // False if the frame contradicts earlier ones: too many bytes, a duplicate, or a different size.
  [[nodiscard]] bool deliver(int from, const FrameHeader& header, std::unique_ptr<Payload> payload);
  // Afterwards nothing writes to the receive's memory. False if a write is in progress or it is complete.
  [[nodiscard]] bool withdraw(PendingReceive& receive);
  // Forgets posted receives and drops all later messages; returns when no write is in progress.
  void close();

  const std::shared_ptr<Notifier>& notifier() const { return notifier_; }

 private:
  struct Part {
    std::uint64_t offset = 0;
    std::unique_ptr<Payload> payload;
  };
  struct Message {
    std::shared_ptr<PendingReceive> receive;  // null: not posted yet
    bool is_known = false;                    // a part has arrived
    std::uint64_t total_bytes = 0;
    std::uint64_t claimed_bytes = 0;  // of parts that arrived
    std::uint64_t stored_bytes = 0;   // of parts copied or kept
    int copying = 0;
    std::vector<Part> kept;
  };
  struct Channel {  // messages of one task with one tag
    std::uint64_t posted = 0;
    std::map<std::uint64_t, Message> open;  // by sequence
  };
  using ChannelKey = std::pair<int, int>;  // from, tag

  void finish_if_complete(Channel& channel, std::uint64_t sequence, Message& message);

  const std::shared_ptr<Notifier> notifier_ = std::make_shared<Notifier>();
  std::mutex mutex_;
  std::map<ChannelKey, Channel> channels_;
  int copying_ = 0;
  bool is_closed_ = false;
};

// The inboxes of a process by context. A message may arrive before its communicator is made here.
class Inboxes {
 public:
  std::shared_ptr<Inbox> get(int context);
  void wake_all();
  void close_all();  // closes all inboxes, including future ones
  // The same for contexts of epochs (Communicator::successor) that are below this one; their messages are forgotten.
  void close_epochs_below(int context);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Inbox>> inboxes_;
  bool is_closed_ = false;
  int open_from_ = Communicator::kContextsPerEpoch;  // contexts of earlier epochs are closed
};

}  // namespace trireme::comm::rpc
