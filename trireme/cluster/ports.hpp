// Ports of this machine for the tasks of a launch. A port that is free now may be another's a moment later, before the
// task that it was meant for listens: so launches also claim theirs from each other, for as long as they live. Used by
// the launcher.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/base/unique_fd.hpp"

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

}  // namespace trireme::cluster
