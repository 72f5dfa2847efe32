// The ranks of this job, joined once in main(): over MPI where an MPI launcher (mpirun, srun) started this process, and
// alone, without starting MPI, where none did. The one place, with its source, that knows which transports were
// compiled in.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/comm/communicator.hpp"

namespace trireme::comm {

class World {
 public:
  virtual ~World() = default;
  // Lives as long as the world; others are split() from it.
  virtual Communicator& communicator() = 0;
  // Leaves in good order, together with all others: the last thing a rank does when all is well. Collective. All other
  // communicators must be gone. Without it (an exception is on its way to main) the transport is left as it is: an exit
  // code other than 0 then makes the launcher end the other ranks.
  virtual void leave() = 0;
};

// "auto", or a name from protocol_names(). Asking for "mpi" without a launcher gives a world of one rank as well.
// Error(unavailable) if a launcher started several ranks and this build has no transport that could join them.
std::unique_ptr<World> join_world(std::string_view protocol = "auto");

// "mpi" where found when building; "local".
std::vector<std::string> protocol_names();
// Name and version, at run time, of the libraries that the transports of this build use.
std::vector<std::pair<std::string, std::string>> transport_versions();

// Rank and size that a launcher gave this process by environment variables; size 1 where there was none. Known before
// anything is joined, so it can decide who prints.
struct LaunchPlace {
  int rank = 0;
  int size = 1;
  std::string launcher;  // "Open MPI", "PMI", "Slurm"; empty: none
};
LaunchPlace launch_place();

}  // namespace trireme::comm
