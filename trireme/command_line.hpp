// Trireme's commands for a program with networks of its own: `my_program bench --model my_network`, `train`, `eval`,
// `export`, `sweep`, `tune`, `launch` and all others. The program `trireme` is this without any.
#pragma once

#include <vector>

#include "trireme/models/model.hpp"

namespace trireme {

// The first and only thing in main(): it may start the program anew, in an environment that suits it. Prints errors
// to stderr and returns the exit code.
int command_line(int argc, char** argv, std::vector<Network> networks = {});

}  // namespace trireme
