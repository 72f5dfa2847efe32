// Checks that all tasks of a job have the same options. For benchmarks and network tests, possibly started by hand.
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::train {

// Collective. Error(bad_input) names the option, both values and the task. Does not compare the paths "tune_cache",
// "network_file" and "data_dir", which may differ between hosts.
void check_same_options(comm::Communicator& tasks, const Json& options);

}  // namespace trireme::train
