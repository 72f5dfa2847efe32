// Asks the control services of other tasks. Made by the world; its owner's thread does the work, in every call.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

struct Tls;

class ControlClient {
 public:
  // All live longer.
  ControlClient(const RpcOptions& options, const Tls& tls, const Identity& self);
  ~ControlClient();

  // Says hello to a task as soon as it can be reached; next_greeting() tells what became of it.
  void start_hello(int task);
  struct Greeting {
    int task = 0;
    enum class Outcome { welcome, refused, interrupted } outcome = Outcome::welcome;
    Identity identity;   // where welcome
    std::string reason;  // where not
  };
  std::optional<Greeting> next_greeting(std::chrono::milliseconds longest);
  // Why a task cannot be reached, in gRPC's words.
  std::string why_silent(int task);

  std::string statistics_of(int task);
  void shut_down(int task);
  Health health_of(int task);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trireme::comm::rpc
