// Copies this program to hosts that lack it: the binary, its loaded libraries, and modules these open later. Each
// version is sent once, into its own folder; the latest few are kept. Used by the launcher before it queries hosts.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"

namespace trireme::cluster {

struct Shipment {
  std::string name;     // of the folder; unique to these contents
  std::string archive;  // packed files: `trireme`, which starts bin/trireme with the libraries in lib/
  std::size_t libraries = 0;
};
// A file of an archive: a line with mode, size and name, then the content.
std::string packed(const std::string& name, const std::string& content, bool is_executable);
Shipment pack_this_program();  // Error(unavailable) if a file cannot be read
// Libraries of the C library or of drivers must be the host's own.
bool belongs_to_the_system(const std::string& library);

struct ShipResult {
  std::string program = {};  // path of `trireme` on the host
  bool was_there = false;    // from an earlier launch
  double seconds = 0;
  std::string problem = {};  // why it is not there; empty: it is
};

// How long to wait for a host before giving up.
struct ShipTimeouts {
  std::chrono::milliseconds answer{30'000};     // until its first output
  std::chrono::milliseconds progress{120'000};  // without any data in either direction
};

// Ships to all hosts at once; results in host order. `folder` is on the hosts, relative to the user's home; empty: the
// usual cache location. Folders that others can write to are refused, because their contents are executed.
std::vector<ShipResult> ship(const Shipment& shipment, const std::vector<std::string>& hosts, const HostReach& reach,
                             const std::string& folder, const ShipTimeouts& timeouts = {});

}  // namespace trireme::cluster
