#include "trireme/perf/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/peak.hpp"

namespace trireme::perf {
namespace {

TEST(Machine, NumbersFitTogether) {
  const Machine machine = read_machine();
  EXPECT_FALSE(machine.host.empty());
  EXPECT_FALSE(machine.cpu.empty());
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_GE(machine.packages, 1);
  EXPECT_GE(machine.numa_nodes, 1);
  EXPECT_GE(machine.cores, machine.packages);
  EXPECT_GE(machine.hardware_threads, machine.cores);
  EXPECT_GE(machine.usable_cores, 1);
  EXPECT_LE(machine.usable_cores, machine.cores);
  EXPECT_GT(machine.available_bytes, 0);
  EXPECT_GT(machine.memory_bytes, machine.available_bytes);
  EXPECT_GE(machine.load, 0);
  for (const Cache& cache : machine.caches) {
    EXPECT_GT(cache.bytes, 0);
    EXPECT_GE(cache.count, 1);
  }
}

TEST(Machine, ABusyOneIsWarnedOf) {
  const auto is_warned = [](const Machine& machine) {
    return std::any_of(machine.warnings.begin(), machine.warnings.end(),
                       [](const std::string& text) { return text.find("timings will be noisy") != std::string::npos; });
  };
  EXPECT_FALSE(is_warned(read_machine(0)));
  EXPECT_TRUE(is_warned(read_machine(1000)));
}

TEST(Machine, ASpinningThreadIsABusyCore) {
  std::atomic<bool> stop = false;
  std::jthread spinner([&] {
    while (!stop) {
    }
  });
  const double busy = busy_cores(std::chrono::milliseconds(300));
  stop = true;
  EXPECT_GT(busy, 0.3);  // it may have to share its core
  EXPECT_LT(busy, 1.2 * read_machine(0).hardware_threads);
}

TEST(Machine, PeakResidentSetGrowsWithTouchedMemory) {
  const std::int64_t before = peak_rss_bytes();
  EXPECT_GT(before, 0);
  constexpr std::int64_t kBytes = 256 << 20;
  const AlignedMemory memory(kBytes);
  std::memset(memory.at(0), 1, kBytes);
  EXPECT_GE(peak_rss_bytes(), before + kBytes / 2);
}

TEST(Machine, TouchedPagesAreCounted) {
  const std::int64_t before = minor_page_faults();
  const AlignedMemory memory(8 << 20);
  std::memset(memory.at(0), 1, 8 << 20);
  EXPECT_GT(minor_page_faults(), before);
}

TEST(Peak, OneThreadDoesSomething) {
  const Peak peak = measure_fma_peak(1, DataType::f32, 0.01);
  EXPECT_GT(peak.flops_per_second, 1e6);
  EXPECT_EQ(peak.threads, 1);
  EXPECT_FALSE(peak.instruction_set.empty());
}

TEST(Peak, MemoryMovesBytes) {
  const Bandwidth bandwidth = measure_memory_bandwidth(1, 0.01);
  EXPECT_GT(bandwidth.copy_bytes_per_second, 1e6);
  EXPECT_GT(bandwidth.read_bytes_per_second, 1e6);
}

TEST(Peak, NeedsAThread) {
  EXPECT_THROW(measure_fma_peak(0), Error);
  EXPECT_THROW(measure_memory_bandwidth(-1), Error);
}

TEST(BuildInfo, IsFilled) {
  const BuildInfo build = build_info();
  EXPECT_EQ(std::count(build.version.begin(), build.version.end(), '.'), 2) << build.version;
  EXPECT_FALSE(build.git.empty());
  EXPECT_FALSE(build.compiler.empty());
  for (const auto& [name, version] : build.libraries) EXPECT_FALSE(version.empty()) << name;
}

}  // namespace
}  // namespace trireme::perf
