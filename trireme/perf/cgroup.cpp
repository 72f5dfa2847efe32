#include "trireme/perf/cgroup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

namespace trireme::perf {
namespace {

namespace fs = std::filesystem;

// cpu.max: "150000 100000" or "max 100000".
std::optional<double> quota_v2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  double quota = 0, period = 0;
  if (file >> quota >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

std::optional<double> quota_v1(const fs::path& group) {
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  double quota = 0, period = 0;  // a quota of -1 means none
  if (quota_file >> quota && period_file >> period && quota > 0 && period > 0) return quota / period;
  return std::nullopt;
}

// Sums the lines "anon 1234" with these names.
double sum_of(const fs::path& path, std::initializer_list<std::string_view> names) {
  std::ifstream file(path);
  double sum = 0, value = 0;
  for (std::string name; file >> name >> value;) {
    if (std::ranges::find(names, name) != names.end()) sum += value;
  }
  return sum;
}

std::optional<double> left_of(const fs::path& limit_file, const fs::path& used_file, double files) {
  constexpr double kNoLimit = 1e18;  // v1 uses a large number for none
  std::ifstream limits(limit_file), uses(used_file);
  double limit = 0, used = 0;  // "max" means none and fails to parse
  if (!(limits >> limit) || !(uses >> used) || limit > kNoLimit) return std::nullopt;
  return std::max(0.0, limit - std::max(0.0, used - files));
}

std::optional<double> memory_v2(const fs::path& group) {
  return left_of(group / "memory.max", group / "memory.current",
                 sum_of(group / "memory.stat", {"inactive_file", "active_file"}));
}

std::optional<double> memory_v1(const fs::path& group) {
  return left_of(group / "memory.limit_in_bytes", group / "memory.usage_in_bytes",
                 sum_of(group / "memory.stat", {"total_inactive_file", "total_active_file"}));
}

std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

using ReadLimit = std::optional<double> (*)(const fs::path& group);

// A container may see only the lower end of its path, at the mount itself: skips groups that do not exist.
std::optional<double> smallest_up_to_root(const fs::path& root, const fs::path& group, ReadLimit read) {
  std::optional<double> result = read(root);
  fs::path place = root;
  for (const fs::path& part : group.relative_path()) {
    place /= part;
    result = smaller(result, read(place));
  }
  return result;
}

// Reads a controller's files of both versions.
std::optional<double> smallest_limit(const fs::path& membership, const fs::path& mount, const std::string& controller,
                                     ReadLimit read_v1, ReadLimit read_v2) {
  std::optional<double> result;
  std::ifstream file(membership);
  for (std::string line; std::getline(file, line);) {
    // "hierarchy:controllers:path"; v2 has no controllers.
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      result = smaller(result, smallest_up_to_root(mount, group, read_v2));
      result = smaller(result, smallest_up_to_root(mount / "unified", group, read_v2));
      continue;
    }
    if (fmt::format(",{},", controllers).find(fmt::format(",{},", controller)) != std::string::npos) {
      const fs::path hierarchy = fs::exists(mount / controllers) ? mount / controllers : mount / controller;
      result = smaller(result, smallest_up_to_root(hierarchy, group, read_v1));
    }
  }
  return result;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& membership, const fs::path& mount) {
  return smallest_limit(membership, mount, "cpu", quota_v1, quota_v2);
}

std::optional<double> memory_left(const fs::path& membership, const fs::path& mount) {
  return smallest_limit(membership, mount, "memory", memory_v1, memory_v2);
}

int within_quota(int threads, std::optional<double> quota) {
  return quota ? std::min(threads, std::max(1, static_cast<int>(*quota))) : threads;
}

}  // namespace trireme::perf
