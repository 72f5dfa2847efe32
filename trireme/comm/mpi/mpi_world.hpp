// MPI as a transport: initialised when the world is joined, finalised when it is left. See comm/world.hpp, which calls
// this; no MPI name appears outside this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trireme/comm/world.hpp"

namespace trireme::comm::mpi {

struct MpiOptions {
  // Messages are cut into parts of at most so many bytes, because MPI counts with int. Tests make it small.
  std::int64_t part_bytes = 1 << 30;
  // Who is gone, by rank in the world: MPI itself cannot tell. Empty: nobody knows. From any thread.
  std::function<Presence(int)> presence = {};
};

// Starts MPI. At most once per process.
std::unique_ptr<World> join(const MpiOptions& options = {});

// "Open MPI 4.1.4", say. Before MPI is started too.
std::string library_version();
// With what carries its messages, as far as the library tells: "Open MPI 4.1.4, pml ob1, btl self+vader+tcp". Once MPI
// is started.
std::string transport_in_words();

}  // namespace trireme::comm::mpi
