// User settings of `trireme launch`, and of tasks that connect over the network, named like the command-line options
// and with the same defaults. tables.hpp declares the option of each member. plan_launch() checks and uses those of a
// launch (cluster/launch_plan.hpp), the command line those of a task.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::cluster {

// How tasks talk, and where they are if they are started by hand.
struct ClusterOptions {
  std::string worker_hosts = {}, ps_hosts = {}, cluster_file = {}, job_name = {};
  std::optional<std::int64_t> task_index = {};
  std::string protocol = "auto";
  std::string secret_file = {};
  std::string tls_cert = {}, tls_key = {}, tls_ca = {};
  double join_timeout = 60;  // seconds
};

struct SshOptions {
  std::string key = {};     // file; empty: ssh's choice
  std::string user = {};    // the same
  std::string config = {};  // the same
  std::optional<std::int64_t> port = {};
};

struct HostOptions {
  // In one of three ways; all empty: this machine, or Slurm's nodes.
  std::string hosts, hostfile, public_addresses, private_addresses;
  bool slurm = false;               // the nodes of the allocation that this process is in
  std::string mpi_plugin = "pmix";  // of srun
  SshOptions ssh;
  std::string network;         // interface or range; empty: where a host is reached
  std::string remote_program;  // empty: as on this machine; in a container as its PATH has it
  bool ship = false;           // copies the program there
  std::string exec;            // in front of commands there, for a container; empty: none
  std::string ship_folder;     // into this folder; empty: the usual one

  bool are_named() const {
    return !hosts.empty() || !hostfile.empty() || !public_addresses.empty() || !private_addresses.empty();
  }
  bool are_given() const { return slurm || are_named(); }
};

// A Slurm job that runs the launch.
struct SubmitOptions {
  bool submit = false;
  std::optional<std::int64_t> nodes;
  std::int64_t tasks_per_node = 1;            // workers
  std::optional<std::int64_t> cpus_per_task;  // nothing: whole nodes
  std::string time, partition, account, constraint;
  std::string job_name = "trireme";
  std::vector<std::string> more;  // options of sbatch
};

struct LaunchOptions {
  std::optional<std::int64_t> workers;  // nothing: the default for the hosts
  std::int64_t ps = 0;
  std::int64_t threads_per_worker = 0;  // see perf::CoreDemand
  std::optional<std::int64_t> threads_per_ps;
  bool oversubscribe = false;
  std::optional<std::int64_t> worker_port, ps_port;  // of the first task on each host
  HostOptions hosts;
  SubmitOptions submit;
  std::string starter = "auto";
  std::string program;  // empty: this binary
  std::string output_folder;
  bool keep_going = false;
  bool dry_run = false;
  std::vector<std::string> command;  // the words after --
};

}  // namespace trireme::cluster
