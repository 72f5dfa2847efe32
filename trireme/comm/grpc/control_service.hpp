// The control service of a task (control.proto). For the server's sources alone.
#pragma once

#include <grpcpp/grpcpp.h>

#include "trireme/comm/grpc/control.grpc.pb.h"
#include "trireme/comm/grpc/gate.hpp"
#include "trireme/comm/grpc/listener.hpp"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

class ControlService {
 public:
  // All live longer.
  ControlService(const RpcOptions& options, const Identity& self, Roster& roster, Answers answers, Gate& gate);

  void register_in(grpc::ServerBuilder& builder) { builder.RegisterService(&service_); }
  // Accepts calls until the server is shut down.
  void start(grpc::ServerCompletionQueue& queue);

 private:
  grpc::Status hello(const wire::HelloRequest& request, wire::HelloReply& reply);
  grpc::Status health(const wire::HealthRequest& request, wire::HealthReply& reply);
  grpc::Status statistics(const wire::StatisticsRequest& request, wire::StatisticsReply& reply);
  grpc::Status shutdown(const wire::ShutdownRequest& request, wire::ShutdownReply& reply);

  const std::vector<RpcTask> tasks_;
  const Identity self_;
  Roster& roster_;
  const Answers answers_;
  Gate& gate_;
  wire::Control::AsyncService service_;
};

}  // namespace trireme::comm::rpc
