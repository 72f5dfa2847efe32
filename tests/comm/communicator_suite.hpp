// What every communicator has to do, whatever carries its messages: bodies that run on all ranks at once. tests/comm
// runs them over threads, tests/mpi over real processes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm::testkit {

struct SuiteCase {
  std::string name;
  std::function<void(Communicator&)> body;  // throws Error where the communicator does not do what it should
};

std::vector<SuiteCase> communicator_suite();

}  // namespace trireme::comm::testkit
