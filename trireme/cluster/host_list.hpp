// The hosts that a user names for a job, and how tasks are distributed over them. Used by the launcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

struct HostSlots {
  std::string name;                 // as ssh knows it
  std::optional<int> workers = {};  // maximum; nullopt: not given
  std::string address = {};         // at which others reach its tasks; empty: ask the host
};

// "a:2,b:2", "a,b", "[fd00::7]:2,fd00::8". Error(bad_input) names the option and the mistake.
std::vector<HostSlots> parse_hosts(const std::string& text, const std::string& source);
// One host per line, as "a", "a:2" or MPI-style "a slots=2"; '#' begins a comment.
std::vector<HostSlots> read_host_file(const std::string& path);

// Two files with one address per line, public ones for ssh and private ones between machines, in the same order.
// Error(bad_input) names file and line of an invalid or duplicate address, or the line counts if they differ.
std::vector<HostSlots> read_address_files(const std::string& public_path, const std::string& private_path);

// The default number: as many as the list says, one on each host without a number.
int usual_workers(const std::vector<HostSlots>& hosts);

// Tasks per host in list order, without empty hosts. Workers: as the list says, host by host; else evenly.
// Servers: round-robin over hosts with workers. Error(bad_input) with the numbers if the hosts do not suffice.
struct HostTasks {
  std::string host;
  comm::JobSize size;
  std::string address = {};  // see HostSlots
};
std::vector<HostTasks> spread_tasks(const std::vector<HostSlots>& hosts, const comm::JobSize& size);

}  // namespace trireme::cluster
