// Runs commands on another host by ssh, or by srun in a Slurm allocation (slurm.hpp), optionally in a container, with
// binary-safe standard input and output. Made by the launcher's front end; used by host_check.hpp and starter.hpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "trireme/config/launch_options.hpp"

namespace trireme::cluster {

struct HostReach {
  std::string name;  // for messages: "ssh"
  // The local command line that runs this command there. Error(unavailable) if ssh or srun is missing.
  std::function<std::vector<std::string>(const std::string& host, const std::vector<std::string>& command)> command;
  // Why the host was not reached, from exit code and last words; empty if the remote command itself ended like this.
  std::function<std::string(int code, const std::string& words)> failure;
  bool is_container = false;  // commands run in a container there
};

// The last line of stderr, without our own name; lines of ssh or srun count only if there are no others.
std::string last_words(const std::string& complaints, const HostReach& reach);

// ssh and its options, before host and command. Never prompts for a password. Error(unavailable) without ssh.
std::vector<std::string> ssh_words(const SshOptions& ssh);

HostReach ssh_reach(const SshOptions& ssh);

// Runs commands inside what the prefix starts, as given to --exec: "apptainer exec image.sif", "podman run -i ...".
// Their child processes stay in that container. The host's shell expands the prefix ("~", "$HOME"). Error(bad_input) if
// it is not a single shell command: unbalanced quotes, "a; b", ...
HostReach inside(const HostReach& reach, const std::string& prefix);

}  // namespace trireme::cluster
