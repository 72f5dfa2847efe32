// Brings a Shipment to hosts, all at once. Each keeps it in a folder of its own, so that it travels once; the
// latest few are kept. Used by the launcher before it asks the hosts anything.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/shipment.hpp"

namespace trireme::cluster {

struct ShipResult {
  std::string program = {};  // where `trireme` is on the host now
  bool was_there = false;    // from an earlier launch
  double seconds = 0;
  std::string problem = {};  // why it is not there; empty: it is
};

// The folder is for shipments, on the hosts; relative to the user's home there, and empty: in the usual place for
// caches. In the order of the hosts.
std::vector<ShipResult> ship(const Shipment& shipment, const std::vector<std::string>& hosts, const HostReach& reach,
                             const std::string& folder);

}  // namespace trireme::cluster
