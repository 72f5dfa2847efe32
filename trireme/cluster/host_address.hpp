// Chooses the address at which other hosts reach a host's tasks. Used by the launcher after host_check.hpp.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_check.hpp"

namespace trireme::cluster {

struct KnownHost {
  std::string name;
  HostFacts facts;
};

// One address per host: in the given network ("10.0.0.0/8") or on the given interface. If empty: where we reached the
// host, or, if these addresses span networks, in the first network that all hosts share. Error(bad_input) names the
// host without one, or lists all hosts' addresses if none is shared.
std::vector<std::string> choose_addresses(const std::vector<KnownHost>& hosts, const std::string& network);
// Error(bad_input) listing the host's addresses if this is not one of them.
void check_has_address(const KnownHost& host, const std::string& address);

// "10.0.0.0/24"; empty if not IPv4.
std::string network_of(const std::string& address, const HostFacts& facts);

}  // namespace trireme::cluster
