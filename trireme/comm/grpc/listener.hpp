// The receiving half of the transport: the server of this task. It has the membership, if this is task 0, answers
// questions, and puts the parts that come in data streams into the inboxes. One thread does all of it. Made by the
// world.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "trireme/comm/grpc/acceptor.hpp"
#include "trireme/comm/grpc/inbox.hpp"
#include "trireme/comm/grpc/membership.hpp"

namespace trireme::comm::rpc {

// What the task itself does when it is asked.
struct ControlHandlers {
  std::function<std::string()> statistics;
  std::function<void()> shut_down;
};

class Listener {
 public:
  // All live longer. Error(bad_input) when this address cannot be listened on, with the reason.
  Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
           ControlHandlers handlers);
  ~Listener();

  // From any thread, all of these. For task 0: all that have joined hear who else has, or who is gone.
  void announce_arrivals();
  void announce_absences();
  // Why the tasks cannot join; empty: nothing is known.
  std::string failure() const { return membership_.failure(); }
  std::int64_t refused_calls() const { return authenticator_.refused(); }  // for lack of a proof
  // Ends all calls of others in good order. Returns when they have heard it, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Ends them at once, and others take this for the task's end.
  void break_off();

 private:
  class DataHandler;

  std::optional<std::string> answer(const std::string& method, grpc::Status& status);
  std::unique_ptr<CallHandler> make_handler(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                            grpc::Status& status);
  // For the server's thread.
  void post(std::function<void()> work);
  void post_and_wait(const std::function<void()>& work);

  Authenticator authenticator_;
  Roster& roster_;
  Inboxes& inboxes_;
  std::vector<std::uint64_t> ended_streams_;  // in good order, by task
  const ControlHandlers handlers_;
  MembershipServer membership_;
  const bool has_membership_;
  CallServer call_server_{authenticator_};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_acceptor_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  Acceptor acceptor_;
  std::thread thread_;
  std::mutex mutex_;
  bool is_closed_ = false;  // the queue takes nothing any more
};

}  // namespace trireme::comm::rpc
