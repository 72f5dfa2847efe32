// The two files in which users of rented machines keep their addresses, one on each line: public ones, at which ssh
// reaches a machine, and private ones, over which the machines talk to each other. Line by line the same machine. Used
// by the launcher.
#pragma once

#include <string>
#include <vector>

#include "trireme/cluster/host_list.hpp"

namespace trireme::cluster {

// Error(bad_input) names file and line of what is no address, or is there twice; and the numbers of lines where they
// differ.
std::vector<HostSlots> read_address_files(const std::string& public_path, const std::string& private_path);

}  // namespace trireme::cluster
