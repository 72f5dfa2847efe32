// The address a task listens on. Used by Listener.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// "10.0.0.1:2230" of "alpha:2230": one address, where a name may stand for several. Error(bad_input) begins with `who`.
std::string resolve_address(const std::string& address, const std::string& who);
// Error(bad_input) where a task would listen on an address that only its own host can reach, and others are elsewhere.
void check_reachable(const std::string& resolved, const std::vector<RpcTask>& tasks, int self);
// A socket that listens there; it gives up connections whose other side has not acknowledged anything for so long.
// Error(bad_input) with the reason: "worker 1: 127.0.0.1:2221 is in use; ...".
UniqueFd listen_on(const std::string& resolved, const std::string& who, std::chrono::milliseconds answer_within);

}  // namespace trireme::comm::rpc
