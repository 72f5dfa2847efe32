// The ranks of this job, joined once in main(): over MPI if an MPI launcher (mpirun, srun) started this process; over
// gRPC, with what the user asked for to move tensors, if it is a task of a cluster; and alone, without starting
// anything, otherwise. The one place, with its source, that knows which transports were compiled in.
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
  // All ranks, of a cluster the workers first: moves tensors. Lives as long as the world; others are split() from it.
  virtual Communicator& communicator() = 0;
  // The same ranks where they agree and notice who is gone: over gRPC in a cluster.
  virtual Communicator& control() { return communicator(); }
  // What this task says of itself to those who ask, as JSON text, and what it does when asked to end. Called by other
  // threads. For tasks of a cluster.
  virtual void set_statistics(std::function<std::string()>) {}
  virtual void set_shutdown(std::function<void()>) {}
  // Leaves in good order, together with all others who are not lost: the last thing a rank does when all is well.
  // Collective. All other communicators must be gone. Without it (an exception is on its way to main) the transport is
  // left as it is: an exit code other than 0 then makes the launcher end the other ranks.
  virtual void leave() = 0;
};

// "auto", or a name from protocol_names(). Asking for "mpi" without a launcher gives a world of one rank as well.
// Error(unavailable) if a launcher started several ranks and this build has no transport that could join them.
std::unique_ptr<World> join_world(std::string_view protocol = "auto");

// Which task of which cluster this process is, and how it meets the others.
struct ClusterPlace {
  ClusterSpec spec;
  TaskPlace place;
  std::string protocol = "grpc";  // from cluster_protocols()
  std::string secret = {};        // that all tasks know and nobody else does
  TlsFiles tls = {};
  double join_timeout = 60;  // seconds

  int rank() const { return spec.rank_of(place); }
};

// All there are: "grpc", "grpc+ucx", "grpc+mpi"; the part after + moves the tensors.
std::vector<std::string> cluster_protocols();

// Returns when all tasks have met. Error(bad_input) if this process is not where it should be (another machine, the
// port is taken), Error(failed) that names who did not come, Error(unavailable) if this build lacks the protocol. The
// log gets whole lines, from any thread.
std::unique_ptr<World> join_world(const ClusterPlace& place, std::function<void(const std::string&)> log);

// UCX for ranks that are joined already, whatever their protocol is: a further way for their tensors. Collective; the
// ranks' communicator outlives it. nullptr if this build has no UCX.
std::unique_ptr<Communicator> add_ucx(Communicator& ranks);

// "mpi" if found when building; "local".
std::vector<std::string> protocol_names();
// Name and version, at run time, of the libraries that the transports of this build use.
std::vector<std::pair<std::string, std::string>> transport_versions();
bool has_transport(const std::string& library);  // one of these, by its name

// Rank and size that a launcher gave this process by environment variables; size 1 if there was none. Known before
// anything is joined, so it can decide who prints.
struct LaunchPlace {
  int rank = 0;
  int size = 1;
  std::string launcher;  // "Open MPI", "PMI", "Slurm"; empty: none
};
LaunchPlace launch_place();

}  // namespace trireme::comm
