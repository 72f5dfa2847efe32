#include "trireme/comm/grpc/listener.hpp"

#include <grpcpp/alarm.h>

#include <thread>

#include "trireme/base/error.hpp"
#include "trireme/comm/grpc/bind_address.hpp"
#include "trireme/comm/grpc/control.grpc.pb.h"
#include "trireme/comm/grpc/control_service.hpp"
#include "trireme/comm/grpc/events.hpp"
#include "trireme/comm/grpc/incoming_stream.hpp"
#include "trireme/comm/grpc/security.hpp"

namespace trireme::comm::rpc {

class Listener::Impl {
 public:
  Impl(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
       Answers answers)
      : gate_(options), control_(options, self, roster, std::move(answers), gate_), sink_(roster, inboxes, options) {
    const std::string who = options.tasks[static_cast<std::size_t>(options.self)].name;
    const std::string address = resolve_address(options.tasks[static_cast<std::size_t>(options.self)].address, who);
    check_reachable(address, options.tasks, options.self);
    grpc::ServerBuilder builder;
    configure(builder, options);
    builder.AddListeningPort(address, make_server_credentials(tls));
    control_.register_in(builder);
    builder.RegisterAsyncGenericService(&data_);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) {
      stop_queue();
      const std::string reason = why_not_listen(address);
      if (!reason.empty()) bad_input("{}: {}", who, reason);
      bad_input(
          "{}: gRPC cannot listen on {}{}", who, address,
          tls.is_on() ? "; --tls-cert and --tls-key must be PEM files that belong together, --tls-ca one too" : "");
    }
    control_.start(*queue_);
    accept_stream(data_, *queue_, gate_, sink_);
    thread_ = std::thread([this] { turn(*queue_); });
  }

  ~Impl() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    // By the thread that begins operations, so that none begins after it.
    Event stop([this](bool) {
      gate_.close();
      queue_->Shutdown();
    });
    grpc::Alarm alarm;
    alarm.Set(queue_.get(), gpr_now(GPR_CLOCK_MONOTONIC), stop.tag());
    thread_.join();
  }

  std::int64_t refused_calls() const { return gate_.refused(); }

 private:
  void stop_queue() {
    queue_->Shutdown();
    turn(*queue_);
  }

  Gate gate_;
  ControlService control_;
  PartSink sink_;
  grpc::AsyncGenericService data_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

Listener::Listener(const RpcOptions& options, const Tls& tls, const Identity& self, Roster& roster, Inboxes& inboxes,
                   Answers answers)
    : impl_(std::make_unique<Impl>(options, tls, self, roster, inboxes, std::move(answers))) {}
Listener::~Listener() = default;

std::int64_t Listener::refused_calls() const { return impl_->refused_calls(); }

}  // namespace trireme::comm::rpc
