// Finds the TFRecord files of a split in a folder.
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/data/files.hpp"
#include "trireme/data/readers.hpp"

namespace trireme::data {
namespace {

constexpr std::string_view kCompressed = ".gz";

bool is_of_split(const std::string& prefix, Split split) {
  return split == Split::train ? prefix == "train" : prefix == "validation" || prefix == "val" || prefix == "test";
}

// "train-00003-of-00008"
struct NumberedName {
  std::string prefix;
  int number = 0, count = 0;
};

std::optional<NumberedName> parse(const std::string& name) {
  std::array<char, 16> prefix{};
  NumberedName parsed;
  int used = 0;
  const int found =
      std::sscanf(name.c_str(), "%15[a-z]-%8d-of-%8d%n", prefix.data(), &parsed.number, &parsed.count, &used);
  if (found != 3 || used != std::ssize(name)) return std::nullopt;
  if (parsed.number < 0 || parsed.number >= parsed.count) return std::nullopt;
  parsed.prefix = prefix.data();
  return parsed;
}

// Error(bad_input) unless the names are numbers 0 to count - 1 of their common count.
void check_complete(const std::string& folder, const std::map<int, std::string>& by_number, int count) {
  if (static_cast<int>(by_number.size()) == count) return;
  int missing = 0;
  while (by_number.contains(missing)) ++missing;
  bad_input("'{}': found {} of {} files, such as {}; number {} is missing", folder, by_number.size(), count,
            by_number.begin()->second, missing);
}

}  // namespace

std::vector<std::string> find_tfrecords(const std::string& path, Split split) {
  if (std::filesystem::is_regular_file(path)) return {path};
  std::map<std::pair<std::string, int>, std::map<int, std::string>> sets;  // by the common part of their names
  std::vector<std::string> files;
  for (const std::string& name : list_folder(path)) {
    const bool is_gz = name.ends_with(kCompressed);
    const std::string plain = is_gz ? name.substr(0, name.size() - kCompressed.size()) : name;
    const std::filesystem::path as_path(plain);
    const bool is_single = as_path.extension() == ".tfrecord" || as_path.extension() == ".tfrecords";
    if (is_single && is_of_split(as_path.stem(), split)) files.push_back(std::filesystem::path(path) / name);
    const auto numbered = parse(plain);
    if (numbered && is_of_split(numbered->prefix, split)) {
      sets[{numbered->prefix + (is_gz ? ".gz" : ""), numbered->count}][numbered->number] = name;
    }
  }
  if (sets.size() + files.size() > 1) {
    bad_input("'{}' holds several sets of TFRecords for one split, but must hold only one: {}", path,
              contents_of(path));
  }
  for (const auto& [set, by_number] : sets) {
    check_complete(path, by_number, set.second);
    for (const auto& [number, name] : by_number) files.push_back(std::filesystem::path(path) / name);
  }
  return files;
}

}  // namespace trireme::data
