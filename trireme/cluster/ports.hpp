// Ports for the tasks of a launch. A free port may be taken before its task listens, so launches claim ports from each
// other through the process that outlives the tasks: the launcher here, the agent (host_agent.hpp) elsewhere.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

struct PortRange {
  const char* option = "";        // for messages: "--ps-port"
  std::optional<int> first = {};  // set by the user: exactly these, or Error(bad_input)
  int usual_first = 0;            // otherwise the next free ones from here
  int count = 0;
};

class PortClaims {
 public:
  std::vector<int> claim(const PortRange& range);
  [[nodiscard]] bool try_claim(int port);

 private:
  std::vector<UniqueFd> claims_;  // abstract sockets whose names are visible to other launches
};

// The ports of a host's tasks; nullopt: the next free ones from the defaults.
struct PortsWanted {
  comm::JobSize tasks;
  std::optional<int> first_worker = {}, first_server = {};
};
struct TaskPorts {
  std::vector<int> workers = {}, servers = {};
};
// Error(bad_input) if requested ports are in use.
TaskPorts claim_ports(const PortsWanted& wanted, PortClaims& claims);
// The result if all ports are free. Claims nothing.
TaskPorts expected_ports(const PortsWanted& wanted);

}  // namespace trireme::cluster
