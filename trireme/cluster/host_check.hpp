// What a launch has to know of another host before it starts anything there, and how it is asked: all hosts at once,
// each answering with `trireme launch-probe`, which is read_host_facts(). Used by the launcher.
#pragma once

#include <nlohmann/json_fwd.hpp>
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

struct HostFacts {
  std::string build;                        // perf::build_text()
  std::vector<std::vector<int>> cores;      // usable ones, as Topology has them
  int core_limit = 0;                       // by a CPU quota
  std::vector<InterfaceAddress> addresses;  // IPv4 and IPv6, without link-local ones
  std::string reached_address;              // at which we have reached it; empty: unknown
  double time = 0;                          // seconds since 1970
  bool hears_launcher = false;              // what the launcher says arrives
};

// Of this machine; nobody is listened to. Error(bad_input) where ports that are asked for are in use.
HostFacts read_host_facts(const PortsWanted& ports);
// Whether the greeting comes over standard input by which the launcher begins its question.
bool hears_launcher();
nlohmann::json to_json(const HostFacts& facts);

struct HostAnswer {
  HostFacts facts = {};
  double clock_skew = 0;     // seconds that its clock is ahead of ours,
  double clock_error = 0;    // give or take
  std::string problem = {};  // why this host cannot be used; empty: it can
};
// In the order of the hosts.
std::vector<HostAnswer> ask_hosts(const std::vector<RemoteHost>& hosts, const HostReach& reach);

}  // namespace trireme::cluster
