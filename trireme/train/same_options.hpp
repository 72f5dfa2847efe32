// All tasks of a job must do the same: what differs in their options is named before anything is done. Used by
// benchmarks and network tests, whose tasks may have been started by hand.
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::train {

// Collective. Error(bad_input) that names the option, both values and the task. Files may differ from host to host:
// "tune_cache" and "network_file" are not compared.
void check_same_options(comm::Communicator& tasks, const Json& options);

}  // namespace trireme::train
