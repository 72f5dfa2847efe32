#include "trireme/comm/cluster_world.hpp"

#include "trireme/base/error.hpp"
#include "trireme/comm/world.hpp"
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

[[noreturn, maybe_unused]] void lacks(const std::string& protocol, const char* what, const char* packages) {
  fail(ErrorKind::unavailable, "--protocol {}: this build has no {}; install {} and build again", protocol, what,
       packages);
}

}  // namespace

std::vector<std::string> cluster_protocols() { return {"grpc", "grpc+ucx", "grpc+mpi"}; }

std::unique_ptr<Communicator> add_ucx([[maybe_unused]] Communicator& ranks) {
#ifdef TRIREME_WITH_UCX
  return ucx::make_communicator(ranks);
#else
  return nullptr;
#endif
}

#ifndef TRIREME_WITH_GRPC

std::unique_ptr<ClusterWorld> join_cluster(const ClusterPlace& place, std::function<void(const std::string&)>) {
  lacks(place.protocol, "gRPC", "libgrpc++-dev and protobuf-compiler");
}

#else

namespace {

std::unique_ptr<World> join_mpi([[maybe_unused]] const ClusterPlace& place,
                                [[maybe_unused]] std::function<Presence(int)> presence) {
#ifdef TRIREME_WITH_MPI
  mpi::MpiOptions options;
  options.presence = std::move(presence);
  auto world = mpi::join(options);
  if (world->communicator().size() != place.spec.size() || world->communicator().rank() != place.rank()) {
    fail(ErrorKind::failed, "{} is rank {} of {} for MPI, not {} of {}", to_string(place.place),
         world->communicator().rank(), world->communicator().size(), place.rank(), place.spec.size());
  }
  return world;
#else
  lacks(place.protocol, "MPI", "libopenmpi-dev");
#endif
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

class GrpcClusterWorld : public ClusterWorld {
 public:
  GrpcClusterWorld(const ClusterPlace& place, std::function<void(const std::string&)> log) {
    const bool uses_mpi = place.protocol == "grpc+mpi", uses_ucx = place.protocol == "grpc+ucx";
    // MPI cannot tell who is gone; the control can, once it is there.
    const auto presence = [this](int rank) {
      return control_ == nullptr ? Presence::here : control_->communicator().presence(rank);
    };
    if (uses_mpi) mpi_ = join_mpi(place, presence);
    control_ = rpc::join(rpc_options(place, std::move(log)));
    if (uses_ucx) ucx_ = add_ucx(control_->communicator());
    if (uses_ucx && ucx_ == nullptr) lacks(place.protocol, "UCX", "libucx-dev");
  }

  Communicator& data() override { return mpi_ ? mpi_->communicator() : ucx_ ? *ucx_ : control_->communicator(); }
  Communicator& control() override { return control_->communicator(); }
  void set_statistics(std::function<std::string()> statistics) override {
    control_->set_statistics(std::move(statistics));
  }
  void set_shutdown(std::function<void()> shutdown) override { control_->set_shutdown(std::move(shutdown)); }

  void leave() override {
    // MPI ends for all together or not at all; those who are lost took it with them.
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
  std::unique_ptr<rpc::RpcWorld> control_;
  std::unique_ptr<Communicator> ucx_;  // uses the control
};

}  // namespace

std::unique_ptr<ClusterWorld> join_cluster(const ClusterPlace& place, std::function<void(const std::string&)> log) {
  return std::make_unique<GrpcClusterWorld>(place, std::move(log));
}

#endif

}  // namespace trireme::comm
