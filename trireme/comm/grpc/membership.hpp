// Who takes part in a job: every task but task 0 has one call to task 0, which lasts as long as both do. In it the task
// says who it is and, at the end, that it leaves; it hears who else has joined and who is gone, and tells the roster.
// So tasks need no connection to those that they have nothing to send.
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

// The task that has the server.
inline constexpr int kMembershipTask = 0;

// Used by the server's thread alone, but for what is said otherwise.
class MembershipServer {
 public:
  MembershipServer(const RpcOptions& options, const Identity& self, Roster& roster, Authenticator& authenticator);

  std::unique_ptr<CallHandler> make_handler(const wire::Claim& caller, IncomingCall& call);
  // All that have joined hear who else has.
  void announce_arrivals();
  // ... and who is gone that they have not heard of.
  void announce_absences();

  // From any thread: why the tasks of this job cannot join; empty: nothing is known.
  std::string failure() const;

 private:
  class MemberHandler;

  // Why a task cannot join; empty: it has.
  std::string admit(const wire::Claim& caller, const wire::Join& join);
  std::string arrivals() const;  // an update, as it is sent
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
  // All live longer; the queue's thread does the work.
  MembershipClient(const Caller& caller, Roster& roster, grpc::CompletionQueue& queue);
  ~MembershipClient();

  // As soon as task 0 can be reached.
  void join();
  // Why this task cannot take part; empty: nothing is known.
  std::string failure() const;
  // Why task 0 cannot be reached.
  std::string last_error() const;

  // Returns when task 0 has heard that we leave, or after this time.
  void leave(std::chrono::milliseconds longest);
  // Ends without that, so that task 0 loses us.
  void break_off();

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
