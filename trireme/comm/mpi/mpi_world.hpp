// MPI as a transport: initialized on join, finalized on leave. No MPI name appears outside this folder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "trireme/comm/world.hpp"

namespace trireme::comm::mpi {

struct MpiOptions {
  // Messages are cut into parts of at most this size because MPI counts with int. Tests make it small.
  std::int64_t part_bytes = 1 << 30;
  // Presence by world rank, which MPI itself cannot tell. Empty: unknown. Called from any thread.
  std::function<Presence(int)> presence = {};
};

std::unique_ptr<World> join(const MpiOptions& options = {});  // starts MPI, once per process

std::string library_version();  // "Open MPI 4.1.4"; before MPI is started too
// With what carries messages: "Open MPI 4.1.4, pml ob1, btl self+vader+tcp". Only after MPI has started.
std::string transport_in_words();

}  // namespace trireme::comm::mpi
