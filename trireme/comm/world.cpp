#include "trireme/comm/world.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"
#ifdef TRIREME_WITH_GRPC
#include "trireme/comm/grpc/grpc_world.hpp"
#endif
#ifdef TRIREME_WITH_MPI
#include "trireme/comm/mpi/mpi_world.hpp"
#endif
#ifdef TRIREME_WITH_UCX
#include "trireme/comm/ucx/make_communicator.hpp"
#endif

namespace trireme::comm {
namespace {

class SingleWorld : public World {
 public:
  Communicator& communicator() override { return *communicator_; }
  void leave() override {}

 private:
  std::unique_ptr<Communicator> communicator_ = make_single();
};

// Launchers and what they tell their processes, the surest first.
struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
};
constexpr std::array kLaunchers{
    Launcher{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    Launcher{"PMI", "PMI_RANK", "PMI_SIZE"},  // MPICH's mpiexec, srun --mpi=pmi2
    Launcher{"Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
};

// -1 where the variable is not set, or is no number.
int number_in_environment(const char* name) {
  const char* text = std::getenv(name);
  int number = -1;
  if (text != nullptr) std::from_chars(text, text + std::strlen(text), number);
  return number;
}

}  // namespace

LaunchPlace launch_place() {
  for (const Launcher& launcher : kLaunchers) {
    const int rank = number_in_environment(launcher.rank);
    const int size = number_in_environment(launcher.size);
    if (rank >= 0 && size > rank) return {.rank = rank, .size = size, .launcher = launcher.name};
  }
  return {};
}

std::unique_ptr<World> join_world(std::string_view protocol) {
  const auto names = protocol_names();
  if (protocol != "auto" && std::find(names.begin(), names.end(), protocol) == names.end()) {
    fail(protocol == "mpi" ? ErrorKind::unavailable : ErrorKind::bad_input,
         "unknown protocol '{}'; this build has: auto, {}", protocol, fmt::join(names, ", "));
  }
  const LaunchPlace place = launch_place();
  if (place.size == 1 || protocol == "local") return std::make_unique<SingleWorld>();
#ifdef TRIREME_WITH_MPI
  auto world = mpi::join();
  if (const int joined = world->communicator().size(); joined != place.size) {
    fail(ErrorKind::unavailable,
         "{} has started {} ranks, but MPI sees {} of them: launcher and MPI library do not go together; under Slurm, "
         "try srun --mpi=pmix or --mpi=pmi2",
         place.launcher, place.size, joined);
  }
  return world;
#else
  fail(ErrorKind::unavailable,
       "{} has started {} ranks, but this build has no MPI to join them: install libopenmpi-dev and build again",
       place.launcher, place.size);
#endif
}

std::vector<std::string> protocol_names() {
  return {
#ifdef TRIREME_WITH_MPI
      "mpi",
#endif
      "local",
  };
}

std::vector<std::pair<std::string, std::string>> transport_versions() {
  return {
#ifdef TRIREME_WITH_MPI
      {"MPI", mpi::library_version()},
#endif
#ifdef TRIREME_WITH_GRPC
      {"gRPC", rpc::library_version()},
#endif
#ifdef TRIREME_WITH_UCX
      {"UCX", ucx::library_version()},
#endif
  };
}

}  // namespace trireme::comm
