// The parameter server's part of a command that trains, run by the tasks of the job "ps" instead of the command itself.
#pragma once

#include <string>

#include "trireme/comm/cluster_world.hpp"

namespace trireme::cli {

// A line of a task's log, on stderr.
void log_line(const std::string& text);

// Serves until the workers have left. Errors are thrown.
void serve(comm::ClusterWorld& world, const comm::ClusterPlace& place);

}  // namespace trireme::cli
