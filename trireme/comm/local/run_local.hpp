// Ranks as threads of this process, for tests and examples: everything that is written over Communicator runs on it,
// without an MPI installation. Messages are copied through queues in memory.
#pragma once

#include <functional>
#include <memory>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

struct LocalOptions {
  int size = 1;
  // Pretends several machines: so many ranks in a row have the same node index. 0: all.
  int ranks_per_node = 0;
};

// Runs the body once per rank, each on a thread of its own, and returns when all have ended. When a body throws, the
// waits of all others fail at once, and the first error is thrown again here, with its rank in front if it is an Error.
void run_local(const LocalOptions& options, const std::function<void(Communicator&)>& body);
inline void run_local(int size, const std::function<void(Communicator&)>& body) { run_local({.size = size}, body); }

// A communicator of this process alone.
std::unique_ptr<Communicator> make_single();

}  // namespace trireme::comm
