// The socket between a task's program and its runner (task_runner.hpp), whose descriptor the program inherits. It
// belongs to the process, like stderr.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace trireme::cluster {

// The value of kLinkVariable for this descriptor; empty if it is not a socket.
std::string link_value(int descriptor);
int runner_link();  // the program's descriptor; -1: no runner has started it

// From any thread; blocks while the runner is busy. False: no runner takes it.
bool tell_runner(const nlohmann::json& message);

}  // namespace trireme::cluster
