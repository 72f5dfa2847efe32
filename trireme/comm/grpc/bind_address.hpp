// The address a task listens on. Used by Listener.
#pragma once

#include <string>
#include <vector>

#include "trireme/comm/grpc/grpc_world.hpp"

namespace trireme::comm::rpc {

// "10.0.0.1:2230" of "alpha:2230": one address, where a name may stand for several. Error(bad_input) begins with `who`.
std::string resolve_address(const std::string& address, const std::string& who);
// Error(bad_input) where a task would listen on an address that only its own host can reach, and others are elsewhere.
void check_reachable(const std::string& resolved, const std::vector<RpcTask>& tasks, int self);
// Why nobody can listen on it now: "127.0.0.1:2221 is in use; ...". Empty: it seems to be possible.
std::string why_not_listen(const std::string& resolved);

}  // namespace trireme::comm::rpc
