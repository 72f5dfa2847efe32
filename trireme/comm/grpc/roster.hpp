// Who of the job has come, has left, is lost: one per process, written by the transport's threads, read by everybody.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// A process that says it is a task.
struct Identity {
  int index = 0;  // in the list of tasks
  std::string name;
  std::string host;
  std::int64_t pid = 0;
  std::string instance;  // random: tells two processes apart whatever their hosts and pids
  std::string node_key;  // equal for tasks that can share memory
};

Identity own_identity(const RpcOptions& options);

class Roster {
 public:
  explicit Roster(const RpcOptions& options);

  // A process takes its place; the same one may do so again. Otherwise the reason why it cannot.
  std::string admit(const Identity& identity);
  // The same for a process of which no more is known yet.
  [[nodiscard]] bool admit(int task, const std::string& instance);
  std::vector<Identity> identities() const;  // of the others who have come
  // It has come to the meeting.
  void reached(int task);
  bool is_reached(int task) const;
  bool has_reached_all() const;
  // Returns when somebody has come or is gone since the last call, or after this time.
  void wait_for_change(std::chrono::milliseconds longest);
  // The first word counts: who has left is not lost when its connections end.
  void leave(int task);
  void lose(int task, const std::string& reason);

  Presence presence(int task) const;
  // Whether it is gone for so long that what it has sent before has come, if anything has: word of its end may come by
  // way of another task and overtake that.
  bool is_long_gone(int task) const;
  // "lost ps 0 (alpha): connection closed", "ps 0 (alpha) has left"
  std::string describe_absence(int task) const;
  std::string reason_of(int task) const;  // why it is lost
  std::string name_of(int task) const;    // "ps 0 (alpha)", by its address before it has come
  Health health() const;

  void set_state(const std::string& state);
  // From now on connections end because this process ends them: nobody is lost by that.
  void close();
  // Called after every leave() and lose().
  void set_on_absence(std::function<void()> on_absence);

 private:
  struct Place {
    Identity identity;  // empty instance: has not come
    bool is_reached = false;
    std::string reason;  // why it is lost
    std::atomic<Presence> presence{Presence::here};
    std::atomic<std::int64_t> gone_since{0};  // steady nanoseconds; 0: it is here
  };
  std::string name_of_locked(int task) const;
  const Place& place(int task) const { return places_[task]; }
  Place& place(int task) { return places_[task]; }

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
