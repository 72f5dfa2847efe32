// A call to another task, from asking for a challenge to the proof that the right one has answered. Made by
// Sender and MembershipClient. For the sources of this folder alone.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "trireme/base/clock.hpp"
#include "trireme/comm/grpc/grpc_support.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

// What all calls of a process share; lives longer than they do.
struct Caller {
  const RpcOptions& options;
  const Tls& tls;
  const Identity& self;
};

// Why a stream has ended: "connection closed (...)".
std::string describe_end(const grpc::Status& status);

class OutgoingCall {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // On a connection of its own. The queue's thread does all that follows.
  OutgoingCall(const Caller& caller, int task, const char* method, grpc::CompletionQueue& queue);

  enum class Answer {
    accepted,
    refused,      // by a task that does not want us
    impostor,     // what answers is not that task
    unreachable,  // within the time
  };
  struct Outcome {
    Answer answer = Answer::accepted;
    std::string reason;  // if not accepted, with the task's name and address
  };
  struct OpenOptions {
    std::chrono::milliseconds timeout;
    bool waits_for_listener;  // otherwise a task at whose address nobody listens is gone
  };
  // Calls `then` by the queue's thread; once it is accepted the stream can be used.
  void open(OpenOptions options, std::function<void(const Outcome&)> then);
  // From any thread: what is under way ends soon. Not while the call is destroyed.
  void cancel();
  Stream& stream() { return *call_; }
  // Why it is not open yet.
  std::string last_error() const;

 private:
  void request_challenge();
  void on_challenged();
  void on_answered();
  void on_failed();
  void end(Answer answer, const std::string& reason);
  void finish(Completion& completion);
  void renew_context();

  const Caller& caller_;
  const int task_;
  const char* const method_;
  grpc::CompletionQueue& queue_;
  grpc::GenericStub stub_;
  std::string claim_, challenge_;
  OpenOptions open_options_{};
  SteadyClock::time_point until_;
  std::function<void(const Outcome&)> then_;

  mutable std::mutex mutex_;                      // of these three, and of the pause
  std::unique_ptr<grpc::ClientContext> context_;  // of the call that is under way
  bool is_cancelled_ = false;
  std::string last_error_;

  std::unique_ptr<Stream> call_;
  grpc::Status status_;
  bool has_wrong_proof_ = false;
  grpc::Alarm pause_;
  std::chrono::milliseconds next_pause_{50};
  Completion asked_{[this](bool) { finish(challenged_); }};
  Completion challenged_{[this](bool) { on_challenged(); }};
  Completion started_;
  Completion answered_{[this](bool) { on_answered(); }};
  Completion failed_{[this](bool) { on_failed(); }};
  Completion paused_{[this](bool) { request_challenge(); }};
};

// Asks a task something that it answers at once, on a connection for this question alone. The answer, to one of the
// methods that have one. Error(failed), which names the task, when none comes within a few seconds; `what` begins it:
// "statistics".
std::string ask(const Caller& caller, int task, const char* method, const char* what);

}  // namespace trireme::comm::rpc
