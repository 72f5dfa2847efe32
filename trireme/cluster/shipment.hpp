// What is brought to a host that does not have the program: the binary of this process, the libraries that it has
// loaded, and the modules that these open later. Made once by the launcher, sent to all hosts by ship() (ship.hpp).
#pragma once

#include <cstddef>
#include <string>

namespace trireme::cluster {

struct Shipment {
  std::string name;     // of the folder that it becomes: what differs has another one
  std::string archive;  // for tar: `trireme`, which starts bin/trireme with the libraries in lib/
  std::size_t libraries = 0;
};

// A library of the C library or of a driver has to be the host's own.
bool belongs_to_the_system(const std::string& library);

// Error(unavailable) where the binary or one of its libraries cannot be read.
Shipment pack_this_program();

}  // namespace trireme::cluster
