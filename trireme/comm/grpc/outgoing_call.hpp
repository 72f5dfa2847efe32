// A call to another task, from challenge to the peer's verified proof. Made by Sender and MembershipClient.
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

// Shared by all calls of a process; outlives them.
struct Caller {
  const RpcOptions& options;
  const Tls& tls;
  const Identity& self;
};

std::string describe_end(const grpc::Status& status);  // "connection closed (...)"

class OutgoingCall {
 public:
  using Stream = grpc::ClientAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  // Uses a separate connection. Everything below runs on the queue's thread.
  OutgoingCall(const Caller& caller, int task, const char* method, grpc::CompletionQueue& queue);

  enum class Answer {
    accepted,
    refused,      // by the task itself, or by a peer that is not that task
    unreachable,  // within the time
  };
  struct Outcome {
    Answer answer = Answer::accepted;
    std::string reason;  // if not accepted; with the task's name and address
  };
  struct OpenOptions {
    std::chrono::milliseconds timeout;
    bool waits_for_listener;  // if false, a task that does not listen counts as gone
  };
  // Calls `then` on the queue's thread; once accepted, the stream can be used.
  void open(OpenOptions options, std::function<void(const Outcome&)> then);
  void cancel();  // from any thread, not during destruction: operations end soon
  Stream& stream() { return *call_; }
  std::string last_error() const;  // why it is not open yet

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

  mutable std::mutex mutex_;                      // guards the next three and the pause
  std::unique_ptr<grpc::ClientContext> context_;  // of the call under way
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

}  // namespace trireme::comm::rpc
