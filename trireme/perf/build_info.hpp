// Describes this build, for `--version`, `doctor` and run records. The commit is the one checked out at build time.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace trireme::perf {

struct BuildInfo {
  std::string version;     // of Trireme
  std::string git;         // commit, plus "-dirty" if files differed; "unknown" outside a repository
  std::string compiler;    // "GNU 12.2.0"
  std::string build_type;  // "Release"
  // Name and version of libraries in every build. Others: backend/registry.hpp, comm/world.hpp, data/formats.hpp.
  std::vector<std::pair<std::string, std::string>> libraries;
};

BuildInfo build_info();

std::string build_text();  // "0.3.0 (commit 1a2b3c4, GNU 12.2.0, Release)"

}  // namespace trireme::perf
