// How a command is run on another host: by ssh, or by srun inside of an allocation of Slurm. Its standard input and
// output are pipes that carry any bytes. A value, made by the launcher's front end; used by the checks of hosts
// (host_check.hpp) and by the starter that keeps a connection to each (host_starter.hpp).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trireme::cluster {

struct HostReach {
  std::string name;  // for messages: "ssh"
  // The command line here that runs this command there. Error(unavailable) where the means are missing.
  std::function<std::vector<std::string>(const std::string& host, const std::vector<std::string>& command)> command;
  // What it means that such a command line ended with this exit code and these last words, where the host was not
  // reached; empty: it was, and the ending is that of the command there.
  std::function<std::string(int code, const std::string& words)> failure;
  bool is_container = false;  // the command runs in one there (container.hpp)
};

// Of what such a command line complained about: the last line, which is the one that ended it, without our own name.
// What those who reach the host say counts only where nobody else has said anything.
std::string last_words(const std::string& complaints, const HostReach& reach);

}  // namespace trireme::cluster
