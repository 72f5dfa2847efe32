#include "trireme/cluster/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "trireme/cluster/secret.hpp"

namespace trireme::cluster {

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool is_launched() { return std::getenv(kLaunchVariable) != nullptr; }

std::optional<comm::ClusterPlace> place_in_launch() {
  const std::string cluster = environment_variable(kClusterVariable);
  if (!is_launched() || cluster.empty()) return std::nullopt;
  comm::ClusterPlace place{.spec = comm::cluster_from_json(cluster, kClusterVariable).spec,
                           .place = {.job = environment_variable(kTaskRoleVariable),
                                     .index = std::atoi(environment_variable(kTaskIndexVariable).c_str())},
                           .secret = environment_variable(kJobSecretVariable)};
  check_place(place.spec, place.place, kTaskRoleVariable, kTaskIndexVariable);
  check_secret(place.secret, fmt::format("the variable {}", kJobSecretVariable));
  return place;
}

bool obeys_launcher_alone() { return environment_variable(kEndRequestsVariable) == kFromLauncher; }

std::string surrounding_launcher() {
  if (is_launched()) return "trireme launch";
  const comm::LaunchPlace place = comm::launch_place();
  return place.size > 1 ? place.launcher : "";
}

bool shows_progress() { return isatty(STDERR_FILENO) != 0 || environment_variable(kProgressVariable) == "terminal"; }

}  // namespace trireme::cluster
