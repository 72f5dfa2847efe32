#include "trireme/comm/grpc/control_service.hpp"

#include <fmt/format.h>

#include <exception>

#include "trireme/comm/grpc/control_messages.hpp"
#include "trireme/comm/grpc/events.hpp"

namespace trireme::comm::rpc {
namespace {

using grpc::StatusCode;

// One call from waiting for it to its answer; deletes itself. The next one waits before this one is answered.
template <typename Request, typename Reply>
class UnaryCall {
 public:
  struct Method {
    const char* name;
    // Asks the service for the next call of this method.
    std::function<void(grpc::ServerContext*, Request*, grpc::ServerAsyncResponseWriter<Reply>*, void*)> await;
    std::function<grpc::Status(const Request&, Reply&)> answer;
  };

  static void await(Method method, Gate& gate) {
    auto* const call = new UnaryCall(std::move(method), gate);
    call->method_.await(&call->context_, &call->request_, &call->writer_, call->came_.tag());
  }

 private:
  UnaryCall(Method method, Gate& gate) : method_(std::move(method)), gate_(gate) {}

  void on_came(bool is_ok) {
    if (!is_ok || gate_.is_closed()) {
      delete this;
      return;
    }
    await(method_, gate_);
    Reply reply;
    grpc::Status status = Gate::refusal();
    if (gate_.admits(context_, method_.name)) status = method_.answer(request_, reply);
    if (status.ok()) {
      writer_.Finish(reply, status, answered_.tag());
    } else {
      writer_.FinishWithError(status, answered_.tag());
    }
  }

  Method method_;
  Gate& gate_;
  grpc::ServerContext context_;
  Request request_;
  grpc::ServerAsyncResponseWriter<Reply> writer_{&context_};
  Event came_{[this](bool is_ok) { on_came(is_ok); }};
  Event answered_{[this](bool) { delete this; }};
};

// The first difference between two lists of tasks; empty: there is none.
std::string difference(const std::vector<RpcTask>& ours,
                       const google::protobuf::RepeatedPtrField<std::string>& theirs) {
  if (ours.size() != static_cast<std::size_t>(theirs.size())) {
    return fmt::format("it has {} tasks here and {} there", ours.size(), theirs.size());
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::string mine = to_line(ours[i]);
    const std::string& other = theirs[static_cast<int>(i)];
    if (mine != other) return fmt::format("task {} is '{}' here and '{}' there", i, mine, other);
  }
  return "";
}

}  // namespace

ControlService::ControlService(const RpcOptions& options, const Identity& self, Roster& roster, Answers answers,
                               Gate& gate)
    : tasks_(options.tasks), self_(self), roster_(roster), answers_(std::move(answers)), gate_(gate) {}

void ControlService::start(grpc::ServerCompletionQueue& queue) {
  const auto serve = [&]<typename Owner, typename Request, typename Reply>(
                         const char* name,
                         void (Owner::*request_call)(grpc::ServerContext*, Request*,
                                                     grpc::ServerAsyncResponseWriter<Reply>*, grpc::CompletionQueue*,
                                                     grpc::ServerCompletionQueue*, void*),
                         grpc::Status (ControlService::*answer)(const Request&, Reply&)) {
    UnaryCall<Request, Reply>::await(
        {.name = name,
         .await = [this, request_call, queue = &queue](
                      auto* context, auto* request, auto* writer,
                      void* tag) { (service_.*request_call)(context, request, writer, queue, queue, tag); },
         .answer = [this, answer](const Request& request, Reply& reply) { return (this->*answer)(request, reply); }},
        gate_);
  };
  using Service = wire::Control::AsyncService;
  serve("Hello", &Service::RequestHello, &ControlService::hello);
  serve("Health", &Service::RequestHealth, &ControlService::health);
  serve("Statistics", &Service::RequestStatistics, &ControlService::statistics);
  serve("Shutdown", &Service::RequestShutdown, &ControlService::shutdown);
}

grpc::Status ControlService::hello(const wire::HelloRequest& request, wire::HelloReply& reply) {
  const Identity from = to_identity(request.from());
  std::string refusal = difference(tasks_, request.tasks());
  if (!refusal.empty()) {
    refusal = fmt::format("{} has another list of tasks than {}: {}", from.name, self_.name, refusal);
  } else if (request.to() != self_.index) {
    refusal = fmt::format("this is {} (task {}), not task {}", self_.name, self_.index, request.to());
  } else {
    refusal = roster_.admit(from);
  }
  if (!refusal.empty()) {
    gate_.report("refused Hello: " + refusal);
    return {StatusCode::FAILED_PRECONDITION, refusal};
  }
  *reply.mutable_self() = to_message(self_);
  return grpc::Status::OK;
}

grpc::Status ControlService::health(const wire::HealthRequest&, wire::HealthReply& reply) {
  reply = to_message(roster_.health());
  return grpc::Status::OK;
}

grpc::Status ControlService::statistics(const wire::StatisticsRequest&, wire::StatisticsReply& reply) {
  try {
    reply.set_json(answers_.statistics());
  } catch (const std::exception& error) {
    return {StatusCode::INTERNAL, error.what()};
  }
  return grpc::Status::OK;
}

grpc::Status ControlService::shutdown(const wire::ShutdownRequest&, wire::ShutdownReply&) {
  try {
    answers_.shut_down();
  } catch (const std::exception& error) {
    return {StatusCode::INTERNAL, error.what()};
  }
  return grpc::Status::OK;
}

}  // namespace trireme::comm::rpc
