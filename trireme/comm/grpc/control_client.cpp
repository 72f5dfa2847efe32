#include "trireme/comm/grpc/control_client.hpp"

#include <fmt/format.h>

#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/comm/grpc/control.grpc.pb.h"
#include "trireme/comm/grpc/control_messages.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {
namespace {

using std::chrono::system_clock;

constexpr std::chrono::seconds kLongestCall{5};

}  // namespace

class ControlClient::Impl {
 public:
  Impl(const RpcOptions& options, const Tls& tls, const Identity& self)
      : options_(options), self_(self), calls_(options.tasks.size()) {
    for (const RpcTask& task : options.tasks) {
      stubs_.push_back(wire::Control::NewStub(make_channel(task.address, tls, options.liveness)));
    }
  }

  ~Impl() {
    for (const auto& call : calls_) {
      if (call != nullptr) call->context.TryCancel();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool is_ok = false;
    while (queue_.Next(&tag, &is_ok)) continue;
  }

  void start_hello(int task) {
    auto& call = calls_[static_cast<std::size_t>(task)];
    call = std::make_unique<HelloCall>();
    call->task = task;
    prepare(call->context, std::chrono::duration_cast<std::chrono::milliseconds>(options_.join_timeout));
    call->context.set_wait_for_ready(true);
    call->reader = stub(task).AsyncHello(&call->context, hello_to(task), &queue_);
    call->reader->Finish(&call->reply, &call->status, call.get());
  }

  std::optional<Greeting> next_greeting(std::chrono::milliseconds longest) {
    void* tag = nullptr;
    bool is_ok = false;
    if (queue_.AsyncNext(&tag, &is_ok, system_clock::now() + longest) != grpc::CompletionQueue::GOT_EVENT) return {};
    const auto* const call = static_cast<const HelloCall*>(tag);
    return greeting_of(call->task, call->status, call->reply);
  }

  std::string why_silent(int task) {
    grpc::ClientContext context;
    prepare(context, std::chrono::milliseconds(300));
    wire::HealthReply reply;
    return stub(task).Health(&context, {}, &reply).error_message();
  }

  // One call that is answered within kLongestCall, or Error(failed).
  template <typename Request, typename Reply>
  Reply ask(int task, const char* what,
            grpc::Status (wire::Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*)) {
    grpc::ClientContext context;
    prepare(context, kLongestCall);
    Reply reply;
    const grpc::Status status = (stub(task).*method)(&context, Request{}, &reply);
    if (status.ok()) return reply;
    fail(ErrorKind::failed, "{} of {} ({}): {}", what, listed(task).name, listed(task).address, status.error_message());
  }

 private:
  struct HelloCall {
    int task = 0;
    grpc::ClientContext context;
    grpc::Status status;
    wire::HelloReply reply;
    std::unique_ptr<grpc::ClientAsyncResponseReader<wire::HelloReply>> reader;
  };

  wire::Control::Stub& stub(int task) { return *stubs_[static_cast<std::size_t>(task)]; }
  const RpcTask& listed(int task) const { return options_.tasks[static_cast<std::size_t>(task)]; }

  void prepare(grpc::ClientContext& context, std::chrono::milliseconds longest) const {
    context.AddMetadata(kSecretKey, options_.secret);
    context.set_deadline(system_clock::now() + longest);
  }

  wire::HelloRequest hello_to(int task) const {
    wire::HelloRequest request;
    *request.mutable_from() = to_message(self_);
    request.set_to(task);
    for (const RpcTask& each : options_.tasks) request.add_tasks(to_line(each));
    return request;
  }

  Greeting greeting_of(int task, const grpc::Status& status, const wire::HelloReply& reply) const {
    using Outcome = Greeting::Outcome;
    Greeting greeting;
    greeting.task = task;
    if (status.ok()) {
      greeting.identity = to_identity(reply.self());
      return greeting;
    }
    greeting.outcome = Outcome::refused;
    greeting.reason = status.error_message();
    const std::string who = fmt::format("{} ({})", listed(task).name, listed(task).address);
    switch (status.error_code()) {
      case grpc::StatusCode::UNAVAILABLE:
      case grpc::StatusCode::DEADLINE_EXCEEDED:
      case grpc::StatusCode::CANCELLED:
        greeting.outcome = Outcome::interrupted;
        break;
      case grpc::StatusCode::UNAUTHENTICATED:
        greeting.reason = fmt::format("{} refuses the secret of {}: all tasks of a job need the same", who, self_.name);
        break;
      default:
        greeting.reason = fmt::format("{} refuses {}: {}", who, self_.name, status.error_message());
    }
    return greeting;
  }

  const RpcOptions& options_;
  const Identity& self_;
  std::vector<std::unique_ptr<wire::Control::Stub>> stubs_;  // by task
  std::vector<std::unique_ptr<HelloCall>> calls_;            // by task
  grpc::CompletionQueue queue_;
};

ControlClient::ControlClient(const RpcOptions& options, const Tls& tls, const Identity& self)
    : impl_(std::make_unique<Impl>(options, tls, self)) {}
ControlClient::~ControlClient() = default;

void ControlClient::start_hello(int task) { impl_->start_hello(task); }

std::optional<ControlClient::Greeting> ControlClient::next_greeting(std::chrono::milliseconds longest) {
  return impl_->next_greeting(longest);
}

std::string ControlClient::why_silent(int task) { return impl_->why_silent(task); }

std::string ControlClient::statistics_of(int task) {
  return impl_->ask(task, "statistics", &wire::Control::Stub::Statistics).json();
}

void ControlClient::shut_down(int task) { impl_->ask(task, "shutdown", &wire::Control::Stub::Shutdown); }

Health ControlClient::health_of(int task) {
  return to_health(impl_->ask(task, "health", &wire::Control::Stub::Health));
}

}  // namespace trireme::comm::rpc
