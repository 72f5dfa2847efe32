// Those who train together, as Worker, Trainer and Benchmark take them. Job has one.
#pragma once

#include "trireme/comm/communicator.hpp"

namespace trireme::train {

// The communicators outlive whoever is given this.
struct ProcessGroup {
  comm::Communicator& workers;
  comm::Communicator* with_servers = nullptr;  // the workers' ranks and then the servers, if there are any
};

}  // namespace trireme::train
