#include "trireme/cluster/environment.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "trireme/comm/world.hpp"

namespace trireme::cluster {

bool is_launched() { return std::getenv(kLaunchVariable) != nullptr; }

bool obeys_launcher_alone() {
  const char* told = std::getenv(kEndRequestsVariable);
  return told != nullptr && std::string_view(told) == kFromLauncher;
}

std::string surrounding_launcher() {
  if (is_launched()) return "trireme launch";
  const comm::LaunchPlace place = comm::launch_place();
  return place.size > 1 ? place.launcher : "";
}

bool shows_progress() {
  const char* told = std::getenv(kProgressVariable);
  return isatty(STDERR_FILENO) != 0 || (told != nullptr && std::string_view(told) == "terminal");
}

}  // namespace trireme::cluster
