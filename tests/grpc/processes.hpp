// Real processes for tests: each runs a function of the test, and what it returns or throws comes back. The test's own
// process must not have used gRPC before, because it does not survive being forked.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::comm::testkit {

struct Outcome {
  bool is_success = false;
  int signal = 0;      // that ended it
  std::string answer;  // what the function returned, or the error's text
};

class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes();  // ends those that still run

  void start(const std::function<std::string()>& body);
  // By order of starting. A process that takes longer than this is killed.
  Outcome wait(std::size_t process, std::chrono::seconds longest = std::chrono::seconds(60));

 private:
  struct Process {
    pid_t pid = -1;
    UniqueFd answer;
  };
  std::vector<Process> processes_;
};

// Tasks "worker 0", "worker 1", ... on free ports of the loopback.
std::vector<rpc::RpcTask> local_tasks(int count);
rpc::RpcOptions options_of(const std::vector<rpc::RpcTask>& tasks, int self);

// Runs the body on all tasks of a job at once; the outcomes in their order.
using TaskBody = std::function<std::string(World&)>;
std::vector<Outcome> run_tasks(const std::vector<rpc::RpcOptions>& options, const TaskBody& body);
std::vector<Outcome> run_tasks(int count, const TaskBody& body);

// The same for a job whose tensors another protocol moves ("grpc+ucx").
using ClusterBody = std::function<std::string(World&)>;
std::vector<Outcome> run_cluster(int count, const std::string& protocol, const ClusterBody& body);
// Whether this build has the protocol.
bool is_available(const std::vector<Outcome>& outcomes);

}  // namespace trireme::comm::testkit
