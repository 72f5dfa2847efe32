// Who of the job has joined, has left, is lost: one per process, written by the transport's threads, read by everybody.
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

// A process that says it is a task, as it is sent.
using Identity = wire::Identity;

Identity own_identity(const RpcOptions& options);

class Roster {
 public:
  explicit Roster(const RpcOptions& options);

  // A process takes its place; the same one may do so again. Otherwise the reason why it cannot.
  std::string admit(const Identity& identity);
  // The same for a process of which no more is known yet.
  [[nodiscard]] bool admit(int task, const std::string& instance);
  std::vector<Identity> identities() const;  // of the others that have joined
  void mark_joined(int task);
  bool has_joined(int task) const;
  bool all_joined() const;
  // Returns when somebody has joined or is gone since the last call, or after this time.
  void wait_for_change(std::chrono::milliseconds longest);
  // The first one counts: a task that has left is not lost when its connections end.
  void leave(int task);
  void lose(int task, const std::string& reason);

  Presence presence(int task) const;
  // Whether it is gone for so long that what it has sent before has come, if anything has: word of its end may come by
  // way of another task and overtake that.
  bool is_long_gone(int task) const;
  // "lost ps 0 (alpha): connection closed", "ps 0 (alpha) has left"
  std::string describe_absence(int task) const;
  std::string reason_of(int task) const;  // why it is lost
  std::string name_of(int task) const;    // "ps 0 (alpha)", by its address before it has joined
  Health health() const;

  void set_state(const std::string& state);
  // From now on connections end because this process ends them: nobody is lost by that.
  void close();
  // Called after every leave() and lose().
  void set_on_absence(std::function<void()> on_absence);

 private:
  struct Place {
    Identity identity;  // empty instance: not known yet
    bool has_joined = false;
    std::string reason;  // why it is lost
    std::atomic<Presence> presence{Presence::here};
    std::atomic<std::int64_t> gone_since{0};  // steady nanoseconds; 0: it is here
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
  std::string state_ = "joining";
  bool is_closed_ = false;
  std::function<void()> on_absence_ = [] {};
};

}  // namespace trireme::comm::rpc
