#include "trireme/perf/build_info.hpp"

#include <fmt/format.h>
#include <omp.h>

#include <nlohmann/json.hpp>

#include "trireme/perf/topology.hpp"
#include "trireme_git_commit.hpp"

namespace trireme::perf {
namespace {

std::string version_text(int major, int minor, int patch) { return fmt::format("{}.{}.{}", major, minor, patch); }

// OpenMP reports the month of the specification the compiler follows.
std::string openmp_version() {
  constexpr std::pair<int, const char*> kVersions[] = {{201107, "3.1"}, {201307, "4.0"}, {201511, "4.5"},
                                                       {201811, "5.0"}, {202011, "5.1"}, {202111, "5.2"}};
  for (const auto& [month, version] : kVersions) {
    if (month == _OPENMP) return version;
  }
  return fmt::format("of {}", _OPENMP);
}

}  // namespace

// CMake defines TRIREME_VERSION, TRIREME_COMPILER and TRIREME_BUILD_TYPE for this file only.
BuildInfo build_info() {
  return {.version = TRIREME_VERSION,
          .git = kGitCommit,
          .compiler = TRIREME_COMPILER,
          .build_type = TRIREME_BUILD_TYPE,
          .libraries = {
              {"OpenMP", openmp_version()},
              {"hwloc", Topology().library_version()},
              {"fmt", version_text(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
              {"nlohmann-json",
               version_text(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH)},
          }};
}

std::string build_text() {
  return fmt::format("{} (commit {}, {}, {})", TRIREME_VERSION, kGitCommit, TRIREME_COMPILER, TRIREME_BUILD_TYPE);
}

}  // namespace trireme::perf
