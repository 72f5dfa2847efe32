// How another host is reached: the command line of ssh. Authentication, names and ways are ssh's business and its
// configuration's. Used by the checks of hosts (host_check.hpp) and by the starter that goes through ssh.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/starter.hpp"

namespace trireme::cluster {

struct SshOptions {
  std::string key = {};     // file; empty: as ssh finds it
  std::string user = {};    // likewise
  std::string config = {};  // likewise
  std::optional<int> port = {};
};

// Asks nobody anything: a password that would be needed is an error.
std::vector<std::string> ssh_command(const SshOptions& ssh, const std::string& host,
                                     const std::vector<std::string>& command);

// What it means that such a command has ended so, after these words: why ssh has not got there. Empty: it has.
std::string ssh_problem(const Ending& ending, const std::string& words);
// Of what a command has complained about: the line that ended it, without our own name.
std::string last_line(std::string text);

struct RemoteHost {
  std::string name;             // as ssh knows it
  std::string program;          // the `trireme` binary there
  std::vector<int> ports = {};  // that its tasks listen on
};

// One connection per host, held by a relay here (host_relay.hpp) with an agent there (host_agent.hpp). The program is
// the `trireme` binary on this machine. Tasks belong to the hosts that they name. Error(unavailable) without ssh.
Starter ssh_starter(const std::string& program, const SshOptions& ssh, const std::vector<RemoteHost>& hosts);

}  // namespace trireme::cluster
