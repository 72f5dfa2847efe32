// ssh as the way to other hosts. Authentication, names and ways are ssh's business and its configuration's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/host_reach.hpp"

namespace trireme::cluster {

struct SshOptions {
  std::string key = {};     // file; empty: as ssh finds it
  std::string user = {};    // likewise
  std::string config = {};  // likewise
  std::optional<int> port = {};
};

// ssh and its options, to be followed by host and command. Asks nobody anything: a password that would be needed is an
// error. Error(unavailable) without ssh.
std::vector<std::string> ssh_words(const SshOptions& ssh);

HostReach ssh_reach(const SshOptions& ssh);

}  // namespace trireme::cluster
