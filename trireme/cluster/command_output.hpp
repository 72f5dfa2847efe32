// What a command of another program says, for the few that are asked something. Used for those of Slurm.
#pragma once

#include <string>
#include <vector>

namespace trireme::cluster {

// Its standard output; the input is what it reads. What it complains about goes to ours. Error(unavailable) where there
// is no such program, Error(failed) where it fails.
std::string command_output(const std::vector<std::string>& command, const std::string& input = "");

}  // namespace trireme::cluster
