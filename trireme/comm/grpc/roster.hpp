// Which tasks have joined, left or are lost. One per process, written by the transport's threads; thread-safe.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

using Identity = wire::Identity;  // a process that claims to be a task, as sent

Identity own_identity(const RpcOptions& options);

struct Attendance {  // task names, as one task sees the others
  std::vector<std::string> here, missing, lost;
};

class Roster {
 public:
  explicit Roster(const RpcOptions& options);

  // Gives a task's place to a process, possibly again. Returns the reason if it cannot; empty on success.
  std::string admit(const Identity& identity);
  [[nodiscard]] bool admit(int task, const std::string& instance);  // with only its instance known
  std::vector<Identity> identities() const;                         // of the others that have joined
  void mark_joined(int task);
  bool has_joined(int task) const;
  bool all_joined() const;
  // Returns when a task has joined or gone since the last call, or after this time.
  void wait_for_change(std::chrono::milliseconds longest);
  // The first call counts: a task that has left is not lost when its connections end.
  void leave(int task);
  void lose(int task, const std::string& reason);

  Presence presence(int task) const;
  // Gone for so long that all its messages have arrived: news of its end may overtake them through another task.
  bool is_long_gone(int task) const;
  std::string describe_absence(int task) const;
  std::string reason_of(int task) const;  // why it is lost
  std::string name_of(int task) const;    // "ps 0 (alpha)"; with its address before it has joined
  Attendance attendance() const;

  // From now on this process itself ends connections, so nobody counts as lost.
  void close();
  void set_on_absence(std::function<void()> on_absence);  // after leave() and lose()

 private:
  struct Place {
    Identity identity;  // empty instance: not known yet
    bool has_joined = false;
    std::string reason;  // why it is lost
    std::atomic<Presence> presence{Presence::here};
    std::atomic<std::int64_t> gone_since{0};  // steady nanoseconds; 0: present
  };
  std::string name_of_locked(int task) const;
  void set_gone(int task, Presence how, const std::string& reason);

  const std::vector<RpcTask> tasks_;
  const int self_;
  const std::function<void(const std::string&)> log_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool has_changed_ = false;
  std::vector<Place> places_;
  bool is_closed_ = false;
  std::function<void()> on_absence_ = [] {};
};

}  // namespace trireme::comm::rpc
