// Commands on other hosts that run in a container there: as --exec has it, "apptainer exec image.sif", "podman run -i
// ...", put in front of each command. Everything that the command starts is in the same container, so that this is all
// that has to know of it. Used by the launcher's front end.
#pragma once

#include <string>

#include "trireme/cluster/host_reach.hpp"

namespace trireme::cluster {

// The same hosts, inside of what the prefix starts. It is for the shell of the hosts: "~" and "$HOME" are theirs.
// Error(bad_input) where it is not one command for a shell: a quote without its end, "a; b", ...
HostReach inside(const HostReach& reach, const std::string& prefix);

}  // namespace trireme::cluster
