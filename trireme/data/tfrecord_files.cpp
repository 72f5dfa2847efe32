// Which files of a folder are the TFRecords of a split.
#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>

#include "trireme/base/error.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/readers.hpp"

namespace trireme::data {
namespace {

std::string prefixes_of(Split split) { return split == Split::train ? "(train)" : "(validation|val|test)"; }

// Error(bad_input) unless the names are number 0 to count - 1 of the count that is part of each.
void check_complete(const std::string& folder, const std::map<int, std::string>& by_number, int count) {
  if (static_cast<int>(by_number.size()) == count) return;
  int missing = 0;
  while (by_number.contains(missing)) ++missing;
  bad_input("'{}': {} of {} files are there, such as {}; number {} is missing", folder, by_number.size(), count,
            by_number.begin()->second, missing);
}

}  // namespace

std::vector<std::string> find_tfrecords(const std::string& path, Split split) {
  if (std::filesystem::is_regular_file(path)) return {path};
  const std::regex numbered(prefixes_of(split) + "-([0-9]{5,8})-of-([0-9]{5,8})");
  const std::regex single(prefixes_of(split) + "\\.tfrecords?");
  std::map<std::string, std::map<int, std::string>> sets;  // by what their names have in common
  std::vector<std::string> files;
  for (const std::string& name : list_folder(path)) {
    std::smatch match;
    if (std::regex_match(name, single)) files.push_back(std::filesystem::path(path) / name);
    if (std::regex_match(name, match, numbered)) {
      sets[fmt::format("{}-*-of-{}", match.str(1), match.str(3))][std::stoi(match.str(2))] = name;
    }
  }
  if (sets.size() + files.size() > 1) {
    bad_input("'{}' holds several sets of TFRecords for one split; one is wanted: {}", path, contents_of(path));
  }
  for (const auto& [pattern, by_number] : sets) {
    check_complete(path, by_number, std::stoi(pattern.substr(pattern.rfind('-') + 1)));
    for (const auto& [number, name] : by_number) files.push_back(std::filesystem::path(path) / name);
  }
  return files;
}

}  // namespace trireme::data
