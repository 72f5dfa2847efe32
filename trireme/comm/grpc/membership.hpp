// Tracks who takes part in a job. Every other task keeps a call open to task 0, sends its identity and finally its
// leave, and records in the roster who has joined or gone. So tasks connect only to those they send to.
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "trireme/comm/grpc/incoming_call.hpp"
#include "trireme/comm/grpc/outgoing_call.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

inline constexpr int kMembershipTask = 0;  // the task that runs the server

// Used only by the server's thread, except as noted.
class MembershipServer {
 public:
  MembershipServer(const RpcOptions& options, const Identity& self, Roster& roster, Authenticator& authenticator);

  std::unique_ptr<CallHandler> make_handler(const wire::Claim& caller, IncomingCall& call);
  void announce_arrivals();
  void announce_absences();

  std::string failure() const;  // from any thread; empty if unknown

 private:
  class MemberHandler;

  std::string admit(const wire::Claim& caller, const wire::Join& join);  // why it cannot join; empty if it has
  std::string arrivals() const;                                          // an encoded update
  std::string absences(const std::vector<int>& tasks) const;

  const std::vector<RpcTask> tasks_;
  const Identity self_;
  Roster& roster_;
  Authenticator& authenticator_;
  std::set<IncomingCall*> members_;
  std::vector<bool> is_absence_announced_;  // by task
  mutable std::mutex mutex_;
  std::string failure_;
};

// The call of every other task. Made by the world.
class MembershipClient {
 public:
  // All arguments must outlive this; the queue's thread does the work.
  MembershipClient(const Caller& caller, Roster& roster, grpc::CompletionQueue& queue);
  ~MembershipClient();

  void join();                     // joins as soon as task 0 can be reached
  std::string failure() const;     // why this task cannot take part; empty if unknown
  std::string last_error() const;  // why task 0 cannot be reached

  // Returns when task 0 knows that we leave, or after this time.
  void leave(std::chrono::milliseconds longest);
  void break_off();  // task 0 counts us as lost

 private:
  void on_opened(const OutgoingCall::Outcome& outcome);
  void on_written(bool is_ok);
  void read();
  void on_read(bool is_ok);
  void on_finished();
  void on_update(const std::string& message);
  void fail(const std::string& reason);
  void end_operation();

  const Caller& caller_;
  Roster& roster_;
  OutgoingCall call_;
  grpc::ByteBuffer message_;
  grpc::Status status_;
  Completion written_{[this](bool is_ok) { on_written(is_ok); }};
  Completion read_{[this](bool is_ok) { on_read(is_ok); }};
  Completion finished_{[this](bool) { on_finished(); }};

  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::string failure_;
  bool is_open_ = false, is_writing_ = false, is_leaving_ = false;
  int under_way_ = 0;  // operations
};

}  // namespace trireme::comm::rpc
