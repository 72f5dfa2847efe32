// The suite of all communicators over UCX, with MPI as the control: started by mpirun, ends with 0 when everything
// holds on all ranks.
#include <fmt/format.h>

#include <exception>

#include "tests/comm/communicator_suite.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"

int main() {
  using namespace trireme::comm;
  std::string doing = "joining";
  try {
    const auto world = mpi::join();
    doing = "making a communicator";
    auto communicator = ucx::make_communicator(world->communicator());
    if (communicator->rank() == 0) {
      fmt::print("data by {}; control by {}\n", communicator->transport(), world->communicator().transport());
    }
    for (const testkit::SuiteCase& suite_case : testkit::communicator_suite()) {
      doing = suite_case.name;
      suite_case.body(*communicator);
      barrier(*communicator);
      if (communicator->rank() == 0) fmt::print("{} holds\n", suite_case.name);
    }
    doing = "leaving";
    communicator.reset();
    world->leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", doing, error.what());
    return 1;
  }
  return 0;
}
