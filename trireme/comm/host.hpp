// This process's host, and which processes it can share memory with.
#pragma once

#include <string>

namespace trireme::comm {

std::string host_name();
// Equal for processes under one kernel that see each other in /proc, which containers on one machine may not.
std::string node_key();

}  // namespace trireme::comm
