// Ranks as threads of this process, for tests and examples without MPI. Messages are copied through queues.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

struct LocalOptions {
  int size = 1;
  // Simulates several machines: this many consecutive ranks share a node index. 0: all.
  int ranks_per_node = 0;
  std::vector<int> nodes = {};  // or the node of each rank
};

// Runs the body once per rank, each on its own thread, and returns when all have ended. If a body throws, all other
// waits fail at once and the first error is rethrown here, prefixed with its rank if it is an Error.
void run_local(const LocalOptions& options, const std::function<void(Communicator&)>& body);
inline void run_local(int size, const std::function<void(Communicator&)>& body) { run_local({.size = size}, body); }

std::unique_ptr<Communicator> make_single();  // a communicator of this process alone

}  // namespace trireme::comm
