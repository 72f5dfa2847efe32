#include "trireme/perf/machine.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/units.hpp"
#include "trireme/perf/cgroup.hpp"
#include "trireme/perf/topology.hpp"

namespace trireme::perf {
namespace {

// Those that decide which kernels run, oldest first, as named in /proc/cpuinfo.
constexpr std::array kInstructionSets{"sse4_2",      "avx",      "f16c",     "avx2",     "fma",         "avx_vnni",
                                      "avx512f",     "avx512dq", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
                                      "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16"};

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string trimmed(const std::string& text, const char* characters = " \t\"") {
  const auto begin = text.find_first_not_of(characters);
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(characters) - begin + 1);
}

// The value of the first line "key<separator>value" of a file; empty if absent.
std::string value_of(const std::string& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto end = line.find(separator);
    if (end != std::string::npos && trimmed(line.substr(0, end)) == key) return trimmed(line.substr(end + 1));
  }
  return "";
}

// A line of /proc/meminfo or /proc/self/status, in KiB; 0 if absent.
std::int64_t kib_line(const std::string& path, const std::string& key) {
  std::int64_t kib = 0;
  std::istringstream(value_of(path, key, ':')) >> kib;
  return kib * 1024;
}

std::vector<std::string> instruction_sets() {
  std::istringstream flags(value_of("/proc/cpuinfo", "flags", ':'));
  std::vector<std::string> present;
  for (std::string flag; flags >> flag;) present.push_back(flag);
  std::vector<std::string> result;
  for (const char* name : kInstructionSets) {
    if (std::ranges::find(present, name) != present.end()) result.emplace_back(name);
  }
  return result;
}

// "always [madvise] never" -> "madvise"
std::string transparent_huge_pages() {
  const std::string line = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const auto open = line.find('['), close = line.find(']');
  return open == std::string::npos || close == std::string::npos ? "unknown" : line.substr(open + 1, close - open - 1);
}

std::vector<std::string> warnings_of(const Machine& machine, std::optional<double> quota) {
  std::vector<std::string> warnings;
  // Half a busy core of two matters at once; with many cores a little more is tolerable.
  if (machine.load > 0.25 * machine.cores) {
    warnings.push_back(
        fmt::format("load of other programs {:.1f} on {} cores: timings will be noisy", machine.load, machine.cores));
  }
  if (quota && *quota < machine.cores) {
    warnings.push_back(fmt::format(
        "CPU quota of {:.3g} on {} cores: the system will stop threads in the middle of steps", *quota, machine.cores));
  }
  const std::string governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (!governor.empty() && governor != "performance") {
    warnings.push_back(fmt::format("CPU frequency governor is '{}', not 'performance': the clock will vary", governor));
  }
  if (machine.transparent_huge_pages == "never") {
    warnings.emplace_back("transparent huge pages are off: access to large arrays will be slower");
  }
  if (machine.available_bytes < machine.memory_bytes / 10) {
    warnings.push_back(fmt::format("only {} of {} memory available: large batches may not fit",
                                   format_bytes(static_cast<double>(machine.available_bytes)),
                                   format_bytes(static_cast<double>(machine.memory_bytes))));
  }
  return warnings;
}

double first_number(const std::string& text) {
  double number = 0;
  std::istringstream(text) >> number;
  return number;
}

// In hundredths of a second (_SC_CLK_TCK), over all processors, since boot.
std::int64_t busy_ticks() {
  std::istringstream line(first_line("/proc/stat"));
  std::string name;
  std::int64_t user = 0, nice = 0, system = 0, idle = 0, waiting = 0, interrupts = 0, soft_interrupts = 0, stolen = 0;
  line >> name >> user >> nice >> system >> idle >> waiting >> interrupts >> soft_interrupts >> stolen;
  return user + nice + system + interrupts + soft_interrupts + stolen;
}

// Threads of the whole system that run or wait for a core, including the calling one; 0 if unknown.
double runnable_threads() { return first_number(value_of("/proc/stat", "procs_running", ' ')); }

}  // namespace

Machine read_machine(double load) {
  Machine machine;
  machine.load = load;
  utsname names{};
  uname(&names);
  machine.host = names.nodename;
  machine.kernel = fmt::format("{} {}", names.sysname, names.release);
  machine.os = value_of("/etc/os-release", "PRETTY_NAME", '=');
  machine.cpu = value_of("/proc/cpuinfo", "model name", ':');
  if (machine.cpu.empty()) machine.cpu = names.machine;
  machine.instruction_sets = instruction_sets();

  const Topology topology;
  const auto quota = cpu_quota();
  machine.packages = topology.packages();
  machine.numa_nodes = topology.numa_nodes();
  machine.cores = topology.cores();
  machine.hardware_threads = topology.hardware_threads();
  machine.usable_cores = within_quota(static_cast<int>(topology.usable_cores().size()), quota);
  machine.caches = topology.caches();

  machine.memory_bytes = kib_line("/proc/meminfo", "MemTotal");
  machine.available_bytes = free_memory().bytes;
  machine.transparent_huge_pages = transparent_huge_pages();
  machine.warnings = warnings_of(machine, quota);
  return machine;
}

// Cgroups account for swap separately: if one limits memory, do not count on swap.
FreeMemory free_memory() {
  FreeMemory free{.bytes = kib_line("/proc/meminfo", "MemAvailable"),
                  .swap_bytes = kib_line("/proc/meminfo", "SwapFree")};
  const std::optional<double> left = memory_left();
  if (left && *left < static_cast<double>(free.bytes)) {
    free = {.bytes = static_cast<std::int64_t>(*left), .swap_bytes = 0, .limit = FreeMemory::Limit::group};
  }
  return free;
}

std::optional<std::int64_t> process_memory_left() {
  std::optional<std::int64_t> least;
  const auto consider = [&](__rlimit_resource_t resource, const char* used) {
    rlimit limit{};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
    const std::int64_t left = static_cast<std::int64_t>(limit.rlim_cur) - kib_line("/proc/self/status", used);
    least = std::min(least.value_or(left), std::max<std::int64_t>(left, 0));
  };
  consider(RLIMIT_AS, "VmSize");
  consider(RLIMIT_DATA, "VmData");
  return least;
}

double current_load(std::chrono::milliseconds during) {
  constexpr std::chrono::milliseconds kBetweenLooks{5};
  const std::int64_t before = busy_ticks();
  const auto start = SteadyClock::now();
  double runnable = 0;
  int looks = 0;
  do {
    std::this_thread::sleep_for(kBetweenLooks);
    runnable += std::max(runnable_threads() - 1, 0.0);
    ++looks;
  } while (SteadyClock::now() - start < during);
  const auto ticks = static_cast<double>(busy_ticks() - before);
  const std::chrono::duration<double> passed = SteadyClock::now() - start;
  const double busy_cores = ticks / static_cast<double>(sysconf(_SC_CLK_TCK)) / passed.count();
  return std::max(busy_cores, runnable / looks);
}

Machine read_machine() {
  constexpr std::chrono::milliseconds kLook{100};
  const char* told = std::getenv(kLoadVariable);
  return read_machine(told != nullptr ? first_number(told) : current_load(kLook));
}

// Not getrusage(): its maximum includes the parent process's.
std::int64_t rss_bytes() { return kib_line("/proc/self/status", "VmRSS"); }
std::int64_t peak_rss_bytes() { return kib_line("/proc/self/status", "VmHWM"); }

}  // namespace trireme::perf
