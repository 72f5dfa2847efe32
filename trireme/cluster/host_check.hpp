// Facts about other hosts that a launch needs first. All hosts are asked at once and answer with `trireme
// launch-probe`, that is read_host_facts(). Used by the launcher.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct InterfaceAddress {
  std::string interface, address;  // "eth0", "10.0.0.7"
  int prefix_bits = 0;             // of its network
};
inline void to_json(nlohmann::json& json, const InterfaceAddress& address) {
  json = {address.interface, address.address, address.prefix_bits};
}
inline void from_json(const nlohmann::json& json, InterfaceAddress& address) {
  address = {json.at(0), json.at(1), json.at(2)};
}

struct HostFacts {
  std::string build;                        // perf::build_text()
  std::vector<std::vector<int>> cores;      // usable ones, as in Topology
  int core_limit = 0;                       // by a CPU quota
  std::vector<InterfaceAddress> addresses;  // IPv4 and IPv6, without link-local ones
  std::string reached_address;              // at which we reached it; empty: unknown
  double time = 0;                          // seconds since 1970
  bool hears_launcher = false;              // the launcher's input arrives
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, build, cores, core_limit, addresses, reached_address, time,
                                   hears_launcher)

// Of this machine; does not set hears_launcher. Error(bad_input) if requested ports are in use.
HostFacts read_host_facts(const PortsWanted& ports);
bool hears_launcher();  // whether the launcher's greeting arrives on standard input

struct HostAnswer {
  HostFacts facts = {};
  double clock_skew = 0;     // seconds that its clock is ahead of ours,
  double clock_error = 0;    // plus or minus
  std::string problem = {};  // why this host cannot be used; empty: it can
};
// In host order.
std::vector<HostAnswer> ask_hosts(const std::vector<RemoteHost>& hosts, const HostReach& reach);

}  // namespace trireme::cluster
