// How a command is run on another host: by ssh, or by srun inside of an allocation of Slurm (slurm.hpp); there possibly
// in a container. Its standard input and output are pipes that carry any bytes. Made by the launcher's front end; used
// by the checks of hosts (host_check.hpp) and by the starter that keeps a connection to each (starter.hpp).
#pragma once

#include <functional>
#include <optional>
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
  bool is_container = false;  // the command runs in one there
};

// Of what such a command line complained about: the last line, which is the one that ended it, without our own name.
// What those who reach the host say counts only where nobody else has said anything.
std::string last_words(const std::string& complaints, const HostReach& reach);

// ssh as the way to other hosts. Authentication, names and ways are ssh's business and its configuration's.
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

// The same hosts, inside of what the prefix starts, as --exec has it: "apptainer exec image.sif", "podman run -i ...".
// Everything that a command starts there is in the same container, so that this is all that has to know of it. The
// prefix is for the shell of the hosts: "~" and "$HOME" are theirs. Error(bad_input) if it is not one command for a
// shell: a quote without its end, "a; b", ...
HostReach inside(const HostReach& reach, const std::string& prefix);

}  // namespace trireme::cluster
