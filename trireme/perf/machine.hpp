// Describes this machine, for `doctor`, the banner of `bench` and run records. Uses hwloc and /proc.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trireme::perf {

struct Cache {
  int level = 0;
  std::int64_t bytes = 0;
  int count = 0;
};

struct Machine {
  std::string host;
  std::string cpu;  // model name
  std::string os, kernel;
  int packages = 0, numa_nodes = 0;
  int cores = 0, hardware_threads = 0;
  int usable_cores = 0;  // in this process's affinity mask, limited by the cgroup's CPU quota
  std::vector<Cache> caches;
  std::int64_t memory_bytes = 0, available_bytes = 0;
  std::vector<std::string> instruction_sets;  // those that matter here: avx2, fma, avx512f, avx512_bf16, amx_tile ...
  double load = 0;                            // other programs' threads that run or wait for a core
  std::string transparent_huge_pages;
  std::vector<std::string> warnings;  // unfit for measuring: load, scaling governor, quota below the cores ...
};

// What was measured longer ago, or with more threads of other programs per core, is doubtful.
constexpr std::int64_t kDaysTrusted = 90;
constexpr double kBusyLoad = 0.2;

// The load, set by whoever starts a run; otherwise read_machine() looks at it for a moment.
constexpr const char* kLoadVariable = "TRIREME_LOAD";

Machine read_machine();
Machine read_machine(double load);

// Memory that can be allocated without anything being killed: of the machine, and within this process's cgroup limits.
struct FreeMemory {
  std::int64_t bytes = 0;
  std::int64_t swap_bytes = 0;                                                               // additional, slow
  enum class Limit : std::uint8_t { machine, group, process, user } limit = Limit::machine;  // the tightest one
};
FreeMemory free_memory();
std::optional<std::int64_t> process_memory_left();  // under `ulimit -v` and `ulimit -d`; nothing: no limit

// Threads that run or wait for a core, averaged over `during` from now, without the calling one. Unlike the number of
// busy cores it keeps growing when all are busy.
double current_load(std::chrono::milliseconds during);

std::int64_t rss_bytes();       // of this process
std::int64_t peak_rss_bytes();  // of this process so far

}  // namespace trireme::perf
