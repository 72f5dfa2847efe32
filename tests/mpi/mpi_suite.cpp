// The suite of all communicators over MPI: started by mpirun, ends with 0 when everything holds on all ranks.
// Usage: mpi_suite [BYTES]: messages are cut into parts of so many bytes.
#include <fmt/format.h>

#include <exception>

#include "tests/comm/communicator_suite.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"

int main(int argc, char** argv) {
  using namespace trireme::comm;
  std::string doing = "joining";
  try {
    mpi::MpiOptions options;
    if (argc > 1) options.part_bytes = std::atoll(argv[1]);
    const auto world = mpi::join(options);
    Communicator& communicator = world->communicator();
    for (const testkit::SuiteCase& suite_case : testkit::communicator_suite()) {
      doing = suite_case.name;
      suite_case.body(communicator);
      barrier(communicator);
      if (communicator.rank() == 0) fmt::print("{} holds\n", suite_case.name);
    }
    doing = "leaving";
    world->leave();
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", doing, error.what());
    return 1;
  }
  return 0;
}
