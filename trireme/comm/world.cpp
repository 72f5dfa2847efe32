#include "trireme/comm/world.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "trireme/base/error.hpp"
#include "trireme/comm/grpc/grpc_world.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/comm/mpi/mpi_world.hpp"
#include "trireme/comm/ucx/make_communicator.hpp"
#include "trireme/features.hpp"

namespace trireme::comm {
namespace {

class SingleWorld : public World {
 public:
  Communicator& communicator() override { return *communicator_; }
  void leave() override {}

 private:
  std::unique_ptr<Communicator> communicator_ = make_single();
};

// Launchers and the variables they set, most reliable first.
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

// -1 if the variable is not set or not a number.
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

std::unique_ptr<World> join_world() {
  const LaunchPlace place = launch_place();
  if (place.size == 1) return std::make_unique<SingleWorld>();
  if constexpr (TRIREME_WITH_MPI) {
    auto world = mpi::join();
    if (const int joined = world->communicator().size(); joined != place.size) {
      fail(ErrorKind::unavailable,
           "{} has started {} ranks, but MPI sees {} of them: the launcher and the MPI library do not match; under "
           "Slurm, try srun --mpi=pmix or --mpi=pmi2",
           place.launcher, place.size, joined);
    }
    return world;
  }
  fail(ErrorKind::unavailable,
       "{} has started {} ranks, but this build has no MPI to join them: install libopenmpi-dev and build again",
       place.launcher, place.size);
}

std::vector<std::pair<std::string, std::string>> transport_versions() {
  std::vector<std::pair<std::string, std::string>> versions;
  if constexpr (TRIREME_WITH_MPI) versions.emplace_back("MPI", mpi::library_version());
  if constexpr (TRIREME_WITH_GRPC) versions.emplace_back("gRPC", rpc::library_version());
  if constexpr (TRIREME_WITH_UCX) versions.emplace_back("UCX", ucx::library_version());
  return versions;
}

bool has_transport(const std::string& library) {
  return std::ranges::any_of(transport_versions(), [&](const auto& known) { return known.first == library; });
}

std::unique_ptr<Communicator> add_ucx(Communicator& ranks) {
  if constexpr (TRIREME_WITH_UCX) return ucx::make_communicator(ranks);
  return nullptr;
}

namespace {

[[noreturn]] void lacks(const std::string& protocol, const char* what, const char* packages) {
  fail(ErrorKind::unavailable, "--protocol {}: this build has no {}; install {} and build again", protocol, what,
       packages);
}

std::unique_ptr<World> join_mpi(const ClusterPlace& place, std::function<Presence(int)> presence) {
  if constexpr (TRIREME_WITH_MPI) {
    mpi::MpiOptions options;
    options.presence = std::move(presence);
    auto world = mpi::join(options);
    if (world->communicator().size() != place.spec.size() || world->communicator().rank() != place.rank()) {
      fail(ErrorKind::failed, "{} is rank {} of {} for MPI, not {} of {}", to_string(place.place),
           world->communicator().rank(), world->communicator().size(), place.rank(), place.spec.size());
    }
    return world;
  }
  lacks(place.protocol, "MPI", "libopenmpi-dev");
}

rpc::RpcOptions rpc_options(const ClusterPlace& place, std::function<void(const std::string&)> log) {
  rpc::RpcOptions options;
  for (int rank = 0; rank < place.spec.size(); ++rank) {
    options.tasks.push_back({place.spec.name_of(rank), place.spec.address_of(place.spec.place_of(rank))});
  }
  options.self = place.rank();
  options.secret = place.secret;
  options.tls = place.tls;
  options.join_timeout = std::chrono::duration<double>(place.join_timeout);
  options.log = std::move(log);
  return options;
}

class ClusterWorld : public World {
 public:
  ClusterWorld(const ClusterPlace& place, std::function<void(const std::string&)> log) {
    const bool uses_mpi = place.protocol == "grpc+mpi", uses_ucx = place.protocol == "grpc+ucx";
    // MPI cannot tell who is gone; the control can, once it exists.
    const auto presence = [this](int rank) {
      return control_ == nullptr ? Presence::here : control_->communicator().presence(rank);
    };
    if (uses_mpi) mpi_ = join_mpi(place, presence);
    control_ = rpc::join(rpc_options(place, std::move(log)));
    if (uses_ucx) ucx_ = add_ucx(control_->communicator());
    if (uses_ucx && ucx_ == nullptr) lacks(place.protocol, "UCX", "libucx-dev");
  }

  Communicator& communicator() override {
    return mpi_ ? mpi_->communicator() : ucx_ ? *ucx_ : control_->communicator();
  }
  Communicator& control() override { return control_->communicator(); }

  void leave() override {
    // MPI finalizes on all ranks together or not at all; lost ranks make it impossible.
    const bool all_here = lost() == 0;
    if (mpi_ && all_here) mpi_->leave();
    ucx_.reset();
    control_->leave();
  }

 private:
  int lost() const {
    int count = 0;
    Communicator& control = control_->communicator();
    for (int rank = 0; rank < control.size(); ++rank) count += control.presence(rank) == Presence::lost ? 1 : 0;
    return count;
  }

  std::unique_ptr<World> mpi_;
  std::unique_ptr<World> control_;
  std::unique_ptr<Communicator> ucx_;  // uses the control
};

}  // namespace

std::unique_ptr<World> join_world(const ClusterPlace& place, std::function<void(const std::string&)> log) {
  if constexpr (TRIREME_WITH_GRPC) return std::make_unique<ClusterWorld>(place, std::move(log));
  lacks(place.protocol, "gRPC", "libgrpc++-dev and protobuf-compiler");
}

}  // namespace trireme::comm
