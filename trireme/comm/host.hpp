// Who this process is among others: its host, and which processes it can share memory with.
#pragma once

#include <string>

namespace trireme::comm {

std::string host_name();
// Equal for processes that run under one kernel and see each other in /proc: containers of one machine may not.
std::string node_key();

}  // namespace trireme::comm
