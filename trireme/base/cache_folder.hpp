// Where files that can be made again are kept for the user from one run to the next: kernel timings, network figures.
#pragma once

#include <string>

namespace trireme {

// The path of a file below XDG_CACHE_HOME or ~/.cache, in a folder of this project's; empty if there is neither. The
// folder need not exist.
std::string cache_path(const std::string& file);

}  // namespace trireme
