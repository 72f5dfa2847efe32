// The receiving half of the transport: the server of this task. It holds the meeting, if this is task 0, answers
// questions, and puts the parts that come in data streams into the inboxes. One thread does all of it. Made by the
// world.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

struct Tls;

// What the task itself has to say when it is asked.
struct Answers {
  std::function<std::string()> statistics;
  std::function<void()> shut_down;
};

class Listener {
 public:
  // All live longer. Error(bad_input) when this address cannot be listened on, with the reason.
  Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
           Answers answers);
  ~Listener();

  // From any thread, all of these. For task 0: those at the meeting hear who has come, or who is gone.
  void tell_arrivals();
  void tell_absences();
  std::string failure() const;         // why the tasks cannot meet; empty: nothing is known
  std::int64_t refused_calls() const;  // for lack of a proof
  // Ends all calls of others in good order. Returns when they have heard it, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Ends them at once, and others take this for the task's end.
  void break_off();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::comm::rpc
