// gRPC as a transport between tasks that each listen on an address of their own, and the control beside it: joining,
// health, statistics, shutdown. Made by whoever knows the list of tasks (a launcher's environment, or the command
// line); no gRPC name appears outside this folder.
//
// Security: at the start of every call both sides prove that they know the job's secret, which itself never travels
// (docs/security.md). TLS adds that nobody between can read or change what follows.
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

// A task whose host or process has stopped without a word: connections are tried every so often, and it is lost when
// there is no answer. A pause shorter than that, of a virtual machine say, is not a loss. A task that has ended is
// noticed at once by its closed connections.
struct Liveness {
  std::chrono::milliseconds ping_every{2000};
  std::chrono::milliseconds answer_within{10000};
};

struct RpcOptions {
  std::vector<RpcTask> tasks = {};  // the same on all tasks; its order is that of ranks
  int self = 0;
  std::string secret = {};  // the same on all tasks, not empty
  TlsFiles tls = {};
  std::chrono::duration<double> join_timeout = std::chrono::seconds(60);
  // The most connections that share the tensors from one task to another.
  int streams = 2;
  // Tensors travel in parts of at most so many bytes, so that streams can share them and copying overlaps with
  // receiving.
  std::int64_t part_bytes = 4 << 20;
  Liveness liveness = {};
  // Gets whole lines, one at a time, from a thread of its own: who is missing, refused calls, lost tasks.
  std::function<void(const std::string&)> log = {};
};

// Tasks by name, as one of them sees the others.
struct Health {
  std::string state;  // "joining", "running", "leaving"
  std::vector<std::string> here, missing, left, lost;
};

class RpcWorld : public World {
 public:
  // leave() waits until all that was sent has arrived at those who are still there, and tells them. Others go on.
  // set_statistics() and set_shutdown() take functions that a thread of the transport calls: quick, and safe from any
  // thread. Empty: an empty object, and nothing is done.

  // What another task says, or is asked to do. Error(failed) when it cannot be asked within a few seconds.
  virtual std::string statistics_of(int task) = 0;
  virtual void shut_down(int task) = 0;
  virtual Health health_of(int task) = 0;
};

// Listens on the address of tasks[self] and returns when all tasks have met. Error(bad_input) when the list, a file or
// the address is wrong or the place is taken; Error(failed) that names who did not come, or refused us.
std::unique_ptr<RpcWorld> join(const RpcOptions& options);

std::string library_version();  // "1.51.1"

}  // namespace trireme::comm::rpc
