// What a launch has to know of another host before it starts anything there, and how it is asked: all hosts at once,
// each answering with `trireme launch-probe`, which is read_host_facts(). Used by the launcher.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"
#include "trireme/cluster/host_starter.hpp"
#include "trireme/cluster/ports.hpp"
#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

// The ports of a host's tasks. Nothing: the next free ones from the usual ones on.
struct PortsWanted {
  comm::JobSize tasks;
  std::optional<int> first_worker = {}, first_server = {};
};
struct TaskPorts {
  std::vector<int> workers = {}, servers = {};
};
// Error(bad_input) where ports that are asked for are in use.
TaskPorts claim_ports(const PortsWanted& wanted, PortClaims& claims);

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
  TaskPorts ports;                          // free ones
  double time = 0;                          // seconds since 1970
  bool hears_launcher = false;              // what the launcher says arrives
};

HostFacts read_host_facts(const PortsWanted& ports);  // of this machine; nobody is listened to
// Whether the greeting comes over standard input by which the launcher begins its question.
bool hears_launcher();
nlohmann::json to_json(const HostFacts& facts);

struct HostQuestion {
  RemoteHost host;
  PortsWanted ports;
};
struct HostAnswer {
  HostFacts facts = {};
  double clock_skew = 0;     // seconds that its clock is ahead of ours,
  double clock_error = 0;    // give or take
  std::string problem = {};  // why this host cannot be used; empty: it can
};
// In the order of the questions.
std::vector<HostAnswer> ask_hosts(const std::vector<HostQuestion>& questions, const HostReach& reach);

}  // namespace trireme::cluster
