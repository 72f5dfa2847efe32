#include "trireme/cluster/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "trireme/comm/world.hpp"

namespace trireme::cluster {

bool is_launched() { return std::getenv(kLaunchVariable) != nullptr; }

std::string surrounding_launcher() { return is_launched() ? "trireme launch" : comm::launch_place().launcher; }

bool shows_progress() {
  const char* told = std::getenv(kProgressVariable);
  return isatty(STDERR_FILENO) != 0 || (told != nullptr && std::string_view(told) == "terminal");
}

}  // namespace trireme::cluster
