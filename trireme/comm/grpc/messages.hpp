// The messages of control.proto as the folder's own types, and back. For the sources of this folder alone.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "trireme/comm/grpc/control.pb.h"
#include "trireme/comm/grpc/roster.hpp"

namespace trireme::comm::rpc {

inline std::string to_line(const RpcTask& task) { return fmt::format("{} {}", task.name, task.address); }

inline Identity to_identity(const wire::Identity& message) {
  return {.index = message.index(),
          .name = message.name(),
          .host = message.host(),
          .pid = message.pid(),
          .instance = message.instance(),
          .node_key = message.node_key()};
}

inline wire::Identity to_message(const Identity& identity) {
  wire::Identity message;
  message.set_index(identity.index);
  message.set_name(identity.name);
  message.set_host(identity.host);
  message.set_pid(identity.pid);
  message.set_instance(identity.instance);
  message.set_node_key(identity.node_key);
  return message;
}

inline wire::HealthReply to_message(const Health& health) {
  wire::HealthReply message;
  message.set_state(health.state);
  message.mutable_here()->Assign(health.here.begin(), health.here.end());
  message.mutable_missing()->Assign(health.missing.begin(), health.missing.end());
  message.mutable_left()->Assign(health.left.begin(), health.left.end());
  message.mutable_lost()->Assign(health.lost.begin(), health.lost.end());
  return message;
}

inline Health to_health(const wire::HealthReply& message) {
  const auto to_vector = [](const auto& names) { return std::vector<std::string>(names.begin(), names.end()); };
  return {.state = message.state(),
          .here = to_vector(message.here()),
          .missing = to_vector(message.missing()),
          .left = to_vector(message.left()),
          .lost = to_vector(message.lost())};
}

}  // namespace trireme::comm::rpc
