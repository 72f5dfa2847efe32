// The tasks of a cluster, joined: over gRPC to agree and to notice who is gone, and over what the user asked for to
// move tensors. Made by the commands that train, for workers and parameter servers alike.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trireme/comm/cluster_spec.hpp"
#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

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

class ClusterWorld {
 public:
  virtual ~ClusterWorld() = default;
  // All tasks, workers first: moves tensors. Lives as long as the world.
  virtual Communicator& data() = 0;
  // The same tasks over gRPC, where they agree; the data's too where nothing else moves it.
  virtual Communicator& control() = 0;
  // What this task says of itself to those who ask, as JSON text, and what it does when asked to end. Called by other
  // threads.
  virtual void set_statistics(std::function<std::string()> statistics) = 0;
  virtual void set_shutdown(std::function<void()> shutdown) = 0;
  // As World::leave(), but without those who are lost.
  virtual void leave() = 0;
};

// Returns when all tasks have met. Error(bad_input) where this process is not where it should be (another machine, the
// port is taken), Error(failed) that names who did not come, Error(unavailable) where this build lacks the protocol.
// The log gets whole lines, from any thread.
std::unique_ptr<ClusterWorld> join_cluster(const ClusterPlace& place, std::function<void(const std::string&)> log);

// UCX for ranks that are joined already, whatever their protocol is: a further way for their tensors. Collective; the
// ranks' communicator outlives it. nullptr where this build has no UCX.
std::unique_ptr<Communicator> add_ucx(Communicator& ranks);

}  // namespace trireme::comm
