// How many processors' worth of time and how much memory the cgroup of this process grants it, as containers and batch
// systems set it. Used by read_machine() and plan_threads().
#pragma once

#include <filesystem>
#include <optional>

namespace trireme::perf {

// The smallest quota on the way from this process's group to the root, in processors (1.5: one and a half); nothing
// where none is set. Both generations of cgroups are read. The places are arguments for the tests.
std::optional<double> cpu_quota(const std::filesystem::path& membership = "/proc/self/cgroup",
                                const std::filesystem::path& mount = "/sys/fs/cgroup");

// Bytes that the limits on the way to the root leave: the limit less what is used, where files that are kept in memory
// do not count, because they give way. Nothing where none is set.
std::optional<double> memory_left(const std::filesystem::path& membership = "/proc/self/cgroup",
                                  const std::filesystem::path& mount = "/sys/fs/cgroup");

// The number of threads that the quota can keep busy, of the given number: whole ones, at least one.
int within_quota(int threads, std::optional<double> quota);

}  // namespace trireme::perf
