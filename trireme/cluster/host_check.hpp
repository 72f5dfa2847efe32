// What a launch has to know of another host before it starts anything there, and how it is asked: all hosts at once,
// each answering with `trireme launch-probe`, which is read_host_facts(). Used by the launcher.
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
  std::vector<std::vector<int>> cores;      // usable ones, as Topology has them
  int core_limit = 0;                       // by a CPU quota
  std::vector<InterfaceAddress> addresses;  // IPv4 and IPv6, without link-local ones
  std::string reached_address;              // at which we have reached it; empty: unknown
  double time = 0;                          // seconds since 1970
  bool hears_launcher = false;              // what the launcher says arrives
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HostFacts, build, cores, core_limit, addresses, reached_address, time,
                                   hears_launcher)

// Of this machine; nobody is listened to. Error(bad_input) where ports that are asked for are in use.
HostFacts read_host_facts(const PortsWanted& ports);
// Whether the greeting comes over standard input by which the launcher begins its question.
bool hears_launcher();

struct HostAnswer {
  HostFacts facts = {};
  double clock_skew = 0;     // seconds that its clock is ahead of ours,
  double clock_error = 0;    // give or take
  std::string problem = {};  // why this host cannot be used; empty: it can
};
// In the order of the hosts.
std::vector<HostAnswer> ask_hosts(const std::vector<RemoteHost>& hosts, const HostReach& reach);

}  // namespace trireme::cluster
