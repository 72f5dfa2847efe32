// The parameter server's part of a command that trains, run by the tasks of the job "ps" instead of the command itself.
#pragma once

#include <string>

#include "trireme/comm/cluster_world.hpp"

namespace trireme::cli {

// A line of a task's log, on stderr.
void log_line(const std::string& text);

// Serves until the workers have left, with so many threads (0: one per core that this process may use). Errors are
// thrown.
void serve(comm::ClusterWorld& world, const comm::ClusterPlace& place, int threads);

}  // namespace trireme::cli
