// Asks other tasks something that they answer at once. Made by the world; its owner's thread does the work, in every
// call, on a connection for this question alone.
#pragma once

#include <string>

#include "trireme/comm/grpc/outgoing_call.hpp"

namespace trireme::comm::rpc {

// The answer, to one of the methods that have one. Error(failed), which names the task, when none comes within a few
// seconds; `what` begins it: "statistics".
std::string ask(const Caller& caller, int task, const char* method, const char* what);

}  // namespace trireme::comm::rpc
