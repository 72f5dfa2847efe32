// Brings this program to hosts that do not have it: the binary of this process, the libraries that it has loaded, and
// the modules that these open later. Each host keeps it in a folder of its own, so that it travels once; the latest few
// are kept. Used by the launcher before it asks the hosts anything.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"

namespace trireme::cluster {

struct Shipment {
  std::string name;     // of the folder that it becomes: what differs has another one
  std::string archive;  // for tar: `trireme`, which starts bin/trireme with the libraries in lib/
  std::size_t libraries = 0;
};
// Error(unavailable) if the binary or one of its libraries cannot be read.
Shipment pack_this_program();
// A library of the C library or of a driver has to be the host's own.
bool belongs_to_the_system(const std::string& library);

struct ShipResult {
  std::string program = {};  // where `trireme` is on the host now
  bool was_there = false;    // from an earlier launch
  double seconds = 0;
  std::string problem = {};  // why it is not there; empty: it is
};

// After so long a host is given up.
struct ShipPatience {
  std::chrono::milliseconds answer{30'000};     // until it says its first word
  std::chrono::milliseconds progress{120'000};  // in which nothing goes to it and nothing comes from it
};

// To all hosts at once. The folder is for shipments, on the hosts; relative to the user's home there, and empty: in the
// usual place for caches. One in which others can write is refused: what lies there is run. In the order of the hosts.
std::vector<ShipResult> ship(const Shipment& shipment, const std::vector<std::string>& hosts, const HostReach& reach,
                             const std::string& folder, const ShipPatience& patience = {});

}  // namespace trireme::cluster
