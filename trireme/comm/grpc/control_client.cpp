#include "trireme/comm/grpc/control_client.hpp"

#include "trireme/base/error.hpp"

namespace trireme::comm::rpc {
namespace {

constexpr std::chrono::seconds kLongestCall{5};

}  // namespace

std::string ask(const Caller& caller, int task, const char* method, const char* what) {
  grpc::CompletionQueue queue;
  OutgoingCall call(caller, task, method, queue);
  OutgoingCall::Outcome outcome{OutgoingCall::Answer::unreachable, "no answer"};
  grpc::ByteBuffer reply;
  bool has_reply = false;
  grpc::Status status;
  // One operation follows another; the last one ends the queue.
  Event finished([&](bool) { queue.Shutdown(); });
  Event read([&](bool is_ok) {
    has_reply = is_ok;
    call.stream().Finish(&status, finished.tag());
  });
  call.open({.longest = kLongestCall, .waits_for_listener = false}, [&](const OutgoingCall::Outcome& opened) {
    outcome = opened;
    if (outcome.answer != OutgoingCall::Answer::welcome) return queue.Shutdown();
    call.stream().Read(&reply, read.tag());
  });
  const auto deadline = after(kLongestCall);
  void* tag = nullptr;
  bool is_ok = false;
  for (bool is_over = false; !is_over;) {
    switch (queue.AsyncNext(&tag, &is_ok, deadline)) {
      case grpc::CompletionQueue::GOT_EVENT:
        static_cast<Event*>(tag)->happen(is_ok);
        break;
      case grpc::CompletionQueue::TIMEOUT:
        call.cancel();
        turn(queue);
        is_over = true;
        break;
      case grpc::CompletionQueue::SHUTDOWN:
        is_over = true;
    }
  }
  if (has_reply && status.ok()) return to_text(reply);
  const RpcTask& asked = caller.options.tasks[task];
  fail(ErrorKind::failed, "{} of {} ({}): {}", what, asked.name, asked.address,
       outcome.answer == OutgoingCall::Answer::welcome ? printable(status.error_message()) : outcome.reason);
}

}  // namespace trireme::comm::rpc
