// What a process that was killed or failed has left behind. Used by tests of what is written aside and renamed.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trireme::testkit {

// Files that were being written and are not complete.
inline std::vector<std::string> half_files(const std::filesystem::path& folder) {
  std::vector<std::string> halves;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") halves.push_back(entry.path());
  }
  return halves;
}

}  // namespace trireme::testkit
