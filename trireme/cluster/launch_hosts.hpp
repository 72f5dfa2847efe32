// What each host of a launch contributes: its cores, divided among its tasks, and the addresses of the tasks. Covers
// this machine alone or hosts that the user names, which are probed first. Part of the launch plan.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/host_check.hpp"
#include "trireme/cluster/host_list.hpp"
#include "trireme/cluster/host_reach.hpp"
#include "trireme/comm/cluster_spec.hpp"
#include "trireme/perf/core_division.hpp"

namespace trireme::cluster {

struct TaskDemand {
  perf::CoreDemand cores;                   // over all hosts
  std::optional<int> worker_port, ps_port;  // of the first task on each host
};

struct HostShare {
  std::string host;
  std::string program;          // the `trireme` binary there
  perf::CoreDivision cores;     // workers and servers of this host
  comm::ClusterSpec addresses;  // of the same; empty where they need none
  PortsWanted ports = {};
  std::string network = {};  // of the addresses, as "10.0.0.0/24"; empty: unknown
};

HostShare share_of_this_machine(const TaskDemand& demand, bool at_addresses, PortClaims& ports);

// How the hosts are reached, into the container where there is one.
HostReach reach_of(const HostOptions& options);

// The hosts that were given, in one of the ways. Reads files, which may be pipes: to be called once.
std::vector<HostSlots> read_hosts(const HostOptions& options);

// What each of these hosts contributes. Asks all of them, prints a line on stderr for each. Error(unavailable) names
// the first that cannot be used, after a line for each of them; Error(bad_input) where tasks do not fit.
std::vector<HostShare> shares_of_hosts(const HostOptions& options, const std::vector<HostSlots>& hosts,
                                       const TaskDemand& demand, bool at_addresses);

std::string this_binary();

}  // namespace trireme::cluster
