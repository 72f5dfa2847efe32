// The receiving half of the transport: the server of this task. It answers the control service and puts the parts that
// come in data streams into the inboxes. One thread does all of it. Made by the world.
#pragma once

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

  std::int64_t refused_calls() const;  // for lack of the secret

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::comm::rpc
