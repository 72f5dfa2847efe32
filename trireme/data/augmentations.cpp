#include "trireme/data/augmentations.hpp"

#include <fmt/ranges.h>

#include <map>

#include "trireme/base/error.hpp"

namespace trireme::data {
namespace {

std::map<std::string, Augment, std::less<>>& added() {
  static std::map<std::string, Augment, std::less<>> all;
  return all;
}

}  // namespace

void add_augmentation(const std::string& name, Augment augment) {
  if (name.empty() || name.find_first_of(", ") != std::string::npos || !augment) {
    bad_input("augmentation '{}': needs a function and a one-word name", name);
  }
  const bool is_ours = name == "none" || name == "flip" || name == "colour";
  if (is_ours || !added().emplace(name, std::move(augment)).second) {
    bad_input("there is already an augmentation '{}'; choose another name", name);
  }
}

const Augment& find_augmentation(std::string_view name) {
  const auto found = added().find(name);
  if (found != added().end()) return found->second;
  std::vector<std::string> names{"flip", "colour"};
  for (const std::string& each : augmentation_names()) names.push_back(each);
  bad_input("--augment: there is no '{}'; must be none, or some of {}, separated by commas", name,
            fmt::join(names, ", "));
}

std::vector<std::string> augmentation_names() {
  std::vector<std::string> names;
  for (const auto& [name, augment] : added()) names.push_back(name);
  return names;
}

}  // namespace trireme::data
