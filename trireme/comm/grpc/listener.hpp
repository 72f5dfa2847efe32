// The receiving half of the transport: this task's server. It runs the membership on task 0 and puts parts from data
// streams into the inboxes, all on one thread. Made by the world.
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

class Listener {
 public:
  // All arguments must outlive this. Error(bad_input) with the reason if it cannot listen on this address.
  Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes);
  ~Listener();

  // All of these are callable from any thread. Task 0 only: tell all joined tasks who has joined, or who is gone.
  void announce_arrivals();
  void announce_absences();
  std::string failure() const { return membership_.failure(); }            // empty if unknown
  std::int64_t refused_calls() const { return authenticator_.refused(); }  // for lack of a proof
  // Ends all incoming calls in good order. Returns when the peers know, or after this time.
  void leave(std::chrono::milliseconds longest);
  void break_off();  // ends them at once; peers take this for the task's end

 private:
  class DataHandler;

  std::unique_ptr<CallHandler> make_handler(const std::string& method, const wire::Claim& caller, IncomingCall& call,
                                            grpc::Status& status);
  // Run work on the server's thread.
  void post(std::function<void()> work);
  void post_and_wait(const std::function<void()>& work);

  Authenticator authenticator_;
  Roster& roster_;
  Inboxes& inboxes_;
  std::vector<std::uint64_t> ended_streams_;  // those that ended in good order, by task
  MembershipServer membership_;
  const bool has_membership_;
  CallServer call_server_{authenticator_};
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> grpc_acceptor_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  Acceptor acceptor_;
  std::thread thread_;
  std::mutex mutex_;
  bool is_closed_ = false;  // the queue takes no more work
};

}  // namespace trireme::comm::rpc
