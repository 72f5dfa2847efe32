// gRPC as a transport between tasks that each listen on an address, and that know who has joined, left or is lost. Made
// from a task list (launcher or command line); no gRPC name appears outside this folder. In every call both sides first
// prove knowledge of the job's secret, which is never sent (docs/security.md). TLS adds encryption.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/cluster_spec.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::comm::rpc {

struct RpcTask {
  std::string name;     // "ps 0"
  std::string address;  // "10.0.0.1:2230"
};

// Detects hosts or processes that stop silently: connections are pinged, and a task that does not answer is lost.
// Shorter pauses, of a virtual machine say, are not a loss. Closed connections reveal an ended task at once.
struct Liveness {
  std::chrono::milliseconds ping_every{2000};
  std::chrono::milliseconds answer_within{10000};
};

struct RpcOptions {
  std::vector<RpcTask> tasks = {};  // the same on all tasks, in rank order
  int self = 0;
  std::string secret = {};  // the same on all tasks, not empty
  TlsFiles tls = {};
  std::chrono::duration<double> join_timeout = std::chrono::seconds(60);
  // Maximum number of connections that share the tensors from one task to another.
  int streams = 2;
  // Tensors travel in parts of at most this size, so that streams can share them and copying overlaps with receiving.
  std::int64_t part_bytes = 4 << 20;
  Liveness liveness = {};
  // Receives complete lines, one at a time, from its own thread: missing tasks, refused calls, lost tasks.
  std::function<void(const std::string&)> log = {};
};

// Listens on the address of tasks[self] and returns when all tasks have joined. Error(bad_input) if the list, a file or
// the address is invalid or the place is taken; Error(failed) names tasks that are missing or refused us.
// leave() waits until everything sent has arrived at the tasks still present, and notifies them; they continue.
std::unique_ptr<World> join(const RpcOptions& options);

std::string library_version();  // "1.51.1"

}  // namespace trireme::comm::rpc
