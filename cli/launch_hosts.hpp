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

namespace trireme::cli {

struct HostOptions {
  // As the user gave them, in one of three ways; all empty: this machine, or Slurm's nodes.
  std::string hosts, hostfile, public_addresses, private_addresses;
  bool slurm = false;                         // use the nodes of the allocation
  std::vector<cluster::HostSlots> allocated;  // those nodes
  std::string mpi_plugin = "pmix";            // for srun
  cluster::SshOptions ssh;
  std::string network;         // interface or range; empty: the one by which a host is reached
  std::string remote_program;  // empty: same path as here, or looked up in a container's PATH
  bool ship = false;           // copy the program to the hosts
  std::string exec;            // prefix for remote commands, to enter a container; empty: none
  std::string ship_folder;     // copy it into this folder; empty: the default

  bool are_named() const {
    return !hosts.empty() || !hostfile.empty() || !public_addresses.empty() || !private_addresses.empty();
  }
  bool are_given() const { return slurm || are_named(); }
};

struct TaskDemand {
  perf::CoreDemand cores;                   // over all hosts
  std::optional<int> worker_port, ps_port;  // of the first task on each host
};

struct HostShare {
  std::string host;
  std::string program;          // the `trireme` binary there
  perf::CoreDivision cores;     // this host's workers and servers
  comm::ClusterSpec addresses;  // of the same tasks; empty if they need none
  cluster::PortsWanted ports = {};
  std::string network = {};  // of the addresses, such as "10.0.0.0/24"; empty: unknown
};

HostShare share_of_this_machine(const TaskDemand& demand, bool at_addresses, cluster::PortClaims& ports);

cluster::HostReach reach_of(const HostOptions& options);  // including the container, if any

// The hosts in whichever way they were given. Reads files, which may be pipes: call only once.
std::vector<cluster::HostSlots> read_hosts(const HostOptions& options);

// Probes all hosts, with a line on stderr for each. Error(unavailable) names the first unusable one; Error(bad_input)
// if tasks do not fit.
std::vector<HostShare> shares_of_hosts(const HostOptions& options, const std::vector<cluster::HostSlots>& hosts,
                                       const TaskDemand& demand, bool at_addresses);

std::string this_binary();

}  // namespace trireme::cli
