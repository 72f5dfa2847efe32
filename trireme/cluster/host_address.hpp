// At which of its addresses the tasks of a host are to be found by those of the others. Worked out by the launcher from
// what the hosts have answered (host_check.hpp).
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_check.hpp"

namespace trireme::cluster {

struct KnownHost {
  std::string name;
  HostFacts facts;
};

// For each host: its address in the given network, "10.0.0.0/8", or at the interface of the given name. Without either,
// where we have reached it; and where these addresses are not all in one network, in the first network that all hosts
// share. Error(bad_input) names the host that has none, or all of them with what they have where they share none.
std::vector<std::string> choose_addresses(const std::vector<KnownHost>& hosts, const std::string& network);
// Error(bad_input) with what it has where the host has no such address.
void check_has_address(const KnownHost& host, const std::string& address);

// The network of one of a host's addresses, as "10.0.0.0/24"; empty for what is not IPv4.
std::string network_of(const std::string& address, const HostFacts& facts);

}  // namespace trireme::cluster
