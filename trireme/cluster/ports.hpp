// Ports of this machine for the tasks of a launch. A port that is free now may be another's a moment later, before the
// task that it was meant for listens: so launches also claim theirs from each other, for as long as they live. They are
// claimed once, by the process that outlives the tasks: the launcher on its own machine, the agent (host_agent.hpp) on
// another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"
#include "trireme/comm/job_size.hpp"

namespace trireme::cluster {

struct PortRange {
  const char* option = "";        // for messages: "--ps-port"
  std::optional<int> first = {};  // as the user has it: exactly these, or Error(bad_input)
  int usual_first = 0;            // otherwise: the next free ones from here on
  int count = 0;
};

class PortClaims {
 public:
  std::vector<int> claim(const PortRange& range);
  [[nodiscard]] bool try_claim(int port);

 private:
  std::vector<UniqueFd> claims_;  // sockets without a file, whose names tell other launches
};

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
// The same where all are free. Nothing is claimed.
TaskPorts expected_ports(const PortsWanted& wanted);

}  // namespace trireme::cluster
