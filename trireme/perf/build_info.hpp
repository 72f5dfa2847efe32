// What this build is: for `--version`, `doctor` and every run record. The commit is the one that was checked out when
// the library was built.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trireme::perf {

struct BuildInfo {
  std::string version;     // of Trireme
  std::string git;         // commit, with "-dirty" where files differed from it; "unknown" outside a repository
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  // Name and version of what every build has. For the others see backend/registry.hpp, comm/world.hpp and
  // data/formats.hpp.
  std::vector<std::pair<std::string, std::string>> libraries;
};

BuildInfo build_info();

// "0.3.0 (commit 1a2b3c4, GNU 12.2.0, Release)"
std::string build_text();

}  // namespace trireme::perf
