// The ranks of this job, joined once in main(): over MPI if mpirun or srun started this process; over gRPC, plus an
// optional tensor transport, in a cluster; else a single rank. Only world.cpp knows the transports compiled in.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/comm/cluster_spec.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

class World {
 public:
  virtual ~World() = default;
  // All ranks, in a cluster workers first; moves tensors. Lives as long as the world; others are split() from it.
  virtual Communicator& communicator() = 0;
  // The same ranks for agreement and failure detection: over gRPC in a cluster.
  virtual Communicator& control() { return communicator(); }
  // Leaves with all ranks that are not lost, after all other communicators are gone; a successful rank's last call.
  // Collective. Without it, as after an exception, a nonzero exit code makes the launcher end the other ranks.
  virtual void leave() = 0;
};

// Without a launcher a world of one rank. Error(unavailable) if a launcher started several ranks but this build has no
// transport to join them.
std::unique_ptr<World> join_world();

// Which task of which cluster this process is, and how it joins the others.
struct ClusterPlace {
  ClusterSpec spec;
  TaskPlace place;
  std::string protocol = "grpc";  // or "grpc+ucx", "grpc+mpi": the part after + moves tensors
  std::string secret = {};        // known only to the tasks
  TlsFiles tls = {};
  double join_timeout = 60;  // seconds

  int rank() const { return spec.rank_of(place); }
};

// Returns when all tasks have joined. Error(bad_input) for a wrong machine or taken port, Error(failed) naming missing
// tasks, Error(unavailable) if this build lacks the protocol. `log` gets complete lines, from any thread.
std::unique_ptr<World> join_world(const ClusterPlace& place, std::function<void(const std::string&)> log);

// UCX as a further tensor transport for joined ranks, which outlive it. Collective. nullptr without UCX in this build.
std::unique_ptr<Communicator> add_ucx(Communicator& ranks);

// Name and version, at run time, of the libraries that the transports of this build use.
std::vector<std::pair<std::string, std::string>> transport_versions();
bool has_transport(const std::string& library);  // one of these, by its name

// From a launcher's environment variables; size 1 without one. Known before joining, to decide who prints.
struct LaunchPlace {
  int rank = 0;
  int size = 1;
  std::string launcher;  // "Open MPI", "PMI", "Slurm"; empty: none
};
LaunchPlace launch_place();

}  // namespace trireme::comm
