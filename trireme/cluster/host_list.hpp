// The hosts that a user names for a job, and how its tasks are spread over them. Used by the launcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

struct HostSlots {
  std::string name;                 // as ssh knows it
  std::optional<int> workers = {};  // at most so many; nothing: no word on that
  std::string address = {};         // at which the others find its tasks; empty: the host is asked
};

// "a:2,b:2", "a,b", "[fd00::7]:2,fd00::8". Error(bad_input) names the option and what is wrong.
std::vector<HostSlots> parse_hosts(const std::string& text, const std::string& source);
// A host on each line, as "a", "a:2" or, as MPI's launchers have it, "a slots=2"; '#' begins a comment.
std::vector<HostSlots> read_host_file(const std::string& path);

// Two files in which users of rented machines keep their addresses, one on each line: public ones, at which ssh reaches
// a machine, and private ones, over which the machines talk to each other; line by line the same machine.
// Error(bad_input) names file and line of what is not an address, or is there twice; and the numbers of lines if they
// differ.
std::vector<HostSlots> read_address_files(const std::string& public_path, const std::string& private_path);

// Where the user gives no number: as many as the list says, and one on each host of which it says nothing.
int usual_workers(const std::vector<HostSlots>& hosts);

// How many tasks go to each host, in the order of the list; hosts without any are left out. Workers: as the list says,
// host by host; evenly where it says nothing. Servers: in turn over the hosts that have workers. Error(bad_input) with
// the numbers where the hosts are too few.
struct HostTasks {
  std::string host;
  comm::JobSize size;
  std::string address = {};  // as HostSlots has it
};
std::vector<HostTasks> spread_tasks(const std::vector<HostSlots>& hosts, const comm::JobSize& size);

}  // namespace trireme::cluster
