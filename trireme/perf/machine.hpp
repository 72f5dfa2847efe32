// What this machine is: for `doctor`, the banner of `bench` and every run record. Read through hwloc and /proc.
#pragma once

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
  double load_average = 0;                    // over one minute
  std::string transparent_huge_pages;
  std::vector<std::string> warnings;  // unfit for measuring: load, scaling governor, quota below the cores ...
};

Machine read_machine();

std::int64_t peak_rss_bytes();  // of this process so far
std::int64_t minor_page_faults();

}  // namespace trireme::perf
