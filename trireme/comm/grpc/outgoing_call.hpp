// A call to another task, from asking for a challenge to the proof that the right one has answered. Made by those who
// send: Outlet, Attendance, ControlClient. For the sources of this folder alone.
#pragma once

#include <grpcpp/alarm.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/roster.hpp"
#include "trireme/comm/grpc/security.hpp"

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
    welcome,
    refused,      // by a task that does not want us
    impostor,     // what answers is not that task
    unreachable,  // within the time
  };
  struct Outcome {
    Answer answer = Answer::welcome;
    std::string reason;  // if not welcome, with the task's name and address
  };
  struct Patience {
    std::chrono::milliseconds longest;
    bool waits_for_listener;  // otherwise a task at whose address nobody listens is gone
  };
  // Calls `then` by the queue's thread; from a welcome on the stream can be used.
  void open(Patience patience, std::function<void(const Outcome&)> then);
  // From any thread: what is under way ends soon. Not while the call is destroyed.
  void cancel();
  Stream& stream() { return *call_; }
  // Why it takes so long.
  std::string last_trouble() const;

 private:
  using Clock = std::chrono::steady_clock;

  void ask();
  void on_challenged();
  void on_answered();
  void on_failed();
  void end(Answer answer, const std::string& reason);
  void finish(Event& event);
  void renew_context();
  std::chrono::milliseconds time_left() const;
  std::string who() const;

  const Caller& caller_;
  const int task_;
  const char* const method_;
  grpc::CompletionQueue& queue_;
  grpc::GenericStub stub_;
  std::string claim_, challenge_;
  Patience patience_{};
  Clock::time_point until_;
  std::function<void(const Outcome&)> then_;

  mutable std::mutex mutex_;                      // of these three, and of the pause
  std::unique_ptr<grpc::ClientContext> context_;  // of the call that is under way
  bool is_cancelled_ = false;
  std::string trouble_;

  std::unique_ptr<Stream> call_;
  grpc::Status status_;
  bool has_wrong_proof_ = false;
  grpc::Alarm pause_;
  std::chrono::milliseconds next_pause_{50};
  Event asked_{[this](bool) { finish(challenged_); }};
  Event challenged_{[this](bool) { on_challenged(); }};
  Event started_;
  Event answered_{[this](bool) { on_answered(); }};
  Event failed_{[this](bool) { on_failed(); }};
  Event paused_{[this](bool) { ask(); }};
};

}  // namespace trireme::comm::rpc
