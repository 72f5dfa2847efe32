// What this machine is: for `doctor`, the banner of `bench` and every run record. Read through hwloc and /proc.
#pragma once

#include <chrono>
#include <cstdint>
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
  int usable_cores = 0;  // cores in this process's affinity mask, further limited by the cgroup's CPU quota
  std::vector<Cache> caches;
  std::int64_t memory_bytes = 0, available_bytes = 0;
  std::vector<std::string> instruction_sets;  // avx2, fma, avx512f, avx512_bf16, amx_tile ... those that matter here
  double load = 0;                            // threads of other programs that run or wait for a core
  std::string transparent_huge_pages;
  std::vector<std::string> warnings;  // unfit for measuring: load, scaling governor, quota below the cores ...
};

// Whoever starts runs one after the other says here how large the load is between them: the average over a minute,
// which is the load otherwise, would be that of the run before.
constexpr const char* kLoadVariable = "TRIREME_LOAD";

Machine read_machine();
Machine read_machine(double load);

// What can be taken without anybody being ended for it: of the machine, and within the limits of this process's control
// group.
struct FreeMemory {
  std::int64_t bytes = 0;
  std::int64_t swap_bytes = 0;  // beside, slowly
  bool by_group = false;        // the group's limit is the nearer one
};
FreeMemory free_memory();

// Threads that run or wait for a core, on average from now on and over so long, without the calling one. Unlike the
// number of busy cores it goes on growing when all cores are busy.
double current_load(std::chrono::milliseconds during);

std::int64_t peak_rss_bytes();  // of this process so far

}  // namespace trireme::perf
