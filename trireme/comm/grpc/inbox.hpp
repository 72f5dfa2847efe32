// Where the messages for one communicator come together. The transport's thread delivers parts, in any order; the
// communicator's thread posts receives. A part goes straight into the memory of its receive; one that comes before that
// is kept as it came. The n-th receive from a task with a tag is for the n-th message, so nothing is searched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "trireme/comm/grpc/bell.hpp"
#include "trireme/comm/grpc/frame.hpp"

namespace trireme::comm::rpc {

// A part as it came, in memory of the library.
class Payload {
 public:
  virtual ~Payload() = default;
  virtual std::size_t size() const = 0;
  virtual void copy_to(std::byte* target) const = 0;
};

// One posted receive, as its communicator sees it.
struct Receive {
  int from = 0;
  int tag = 0;
  std::uint64_t sequence = 0;
  std::span<std::byte> data;
  std::uint64_t came_bytes = 0;  // once complete
  std::atomic<bool> is_complete{false};
};

class Inbox {
 public:
  explicit Inbox(std::shared_ptr<Bell> bell) : bell_(std::move(bell)) {}

  std::shared_ptr<Receive> post(int from, int tag, std::span<std::byte> data);
  // False where the frame contradicts earlier ones: too much, twice, or of another size.
  [[nodiscard]] bool deliver(int from, const FrameHeader& header, std::unique_ptr<Payload> payload);
  // Nothing is written to the receive's memory afterwards. False: just now something is, or it is complete.
  [[nodiscard]] bool withdraw(Receive& receive);
  // Drops all that comes from now on, and forgets what was posted; returns when nothing is being written any more.
  void close();

  Bell& bell() { return *bell_; }
  const std::shared_ptr<Bell>& shared_bell() { return bell_; }

 private:
  struct Part {
    std::uint64_t offset = 0;
    std::unique_ptr<Payload> payload;
  };
  struct Message {
    std::shared_ptr<Receive> receive;  // null: not posted yet
    bool is_known = false;             // something has come
    std::uint64_t total_bytes = 0;
    std::uint64_t claimed_bytes = 0;  // of parts that came
    std::uint64_t stored_bytes = 0;   // of parts that are where they belong, or kept
    int copying = 0;
    std::vector<Part> kept;
  };
  struct Lane {
    std::uint64_t posted = 0;
    std::map<std::uint64_t, Message> open;  // by sequence
  };
  using LaneKey = std::pair<int, int>;  // from, tag

  void finish_if_complete(Lane& lane, std::uint64_t sequence, Message& message);

  std::shared_ptr<Bell> bell_;
  std::mutex mutex_;
  std::map<LaneKey, Lane> lanes_;
  int copying_ = 0;
  bool is_closed_ = false;
};

// The inboxes of a process by context. A message may come before its communicator is made here.
class Inboxes {
 public:
  std::shared_ptr<Inbox> get(int context);
  void ring_all();
  // Closes all there are, and those that are still to come.
  void close_all();

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<Inbox>> inboxes_;
  bool is_closed_ = false;
};

}  // namespace trireme::comm::rpc
