// CPU and memory limits of this process's cgroup, set by containers and batch systems. Used in perf/ and
// host_check.cpp.
#pragma once

#include <filesystem>
#include <optional>

namespace trireme::perf {

// The smallest quota from this process's group up to the root, in processors (such as 1.5); nothing if none is set.
// Reads cgroups v1 and v2. The paths are parameters for tests.
std::optional<double> cpu_quota(const std::filesystem::path& membership = "/proc/self/cgroup",
                                const std::filesystem::path& mount = "/sys/fs/cgroup");

// Limit minus usage in bytes, the smallest up to the root; reclaimable file cache is not usage. Nothing: no limit.
std::optional<double> memory_left(const std::filesystem::path& membership = "/proc/self/cgroup",
                                  const std::filesystem::path& mount = "/sys/fs/cgroup");

int within_quota(int threads, std::optional<double> quota);  // that it can keep busy, at least one

}  // namespace trireme::perf
