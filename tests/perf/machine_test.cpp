#include "trireme/perf/machine.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/aligned_memory.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/cgroup.hpp"
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

class Spinners {
 public:
  explicit Spinners(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
        }
      });
    }
  }

 private:
  std::vector<std::jthread> threads_;
};

TEST(Machine, ASpinningThreadIsLoad) {
  const Spinners one(1);
  EXPECT_GT(current_load(std::chrono::milliseconds(300)), 0.3);  // it may have to share its core
}

TEST(Machine, ThreadsThatWaitForACoreAreLoadToo) {
  if (cpu_quota()) GTEST_SKIP() << "threads that a quota has stopped wait for no core";
  const int hardware_threads = read_machine(0).hardware_threads;
  const Spinners many(4 * hardware_threads);
  EXPECT_GT(current_load(std::chrono::milliseconds(300)), 2.0 * hardware_threads);
}

TEST(Machine, ItsLoadIsThatOfTheMomentUnlessItIsTold) {
  if (cpu_quota()) GTEST_SKIP() << "threads that a quota has stopped wait for no core";
  unsetenv(kLoadVariable);
  const int hardware_threads = read_machine(0).hardware_threads;
  const Spinners many(4 * hardware_threads);
  EXPECT_GT(read_machine().load, 2.0 * hardware_threads);
  setenv(kLoadVariable, "7.5", 1);
  EXPECT_EQ(read_machine().load, 7.5);
  unsetenv(kLoadVariable);
}

TEST(Machine, PeakResidentSetGrowsWithTouchedMemory) {
  const std::int64_t before = peak_rss_bytes();
  EXPECT_GT(before, 0);
  constexpr std::int64_t kBytes = 256 << 20;
  const AlignedMemory memory(kBytes);
  std::memset(memory.at(0), 1, kBytes);
  EXPECT_GE(peak_rss_bytes(), before + kBytes / 2);
}

TEST(Peak, OneThreadDoesSomething) {
  const Peak peak = measure_fma_peak(1, DataType::f32, 0.01);
  EXPECT_GT(peak.flops_per_second, 1e6);
  EXPECT_EQ(peak.threads, 1);
  EXPECT_FALSE(peak.instruction_set.empty());
}

TEST(Peak, Bf16IsThatOfTheMatrixUnitsIfThereAreSome) {
  const std::vector<std::string> sets = read_machine(0).instruction_sets;
  if (std::find(sets.begin(), sets.end(), "amx_bf16") == sets.end()) GTEST_SKIP() << "this CPU has no AMX";
  const Peak peak = measure_fma_peak(1, DataType::bf16, 0.01);
  EXPECT_EQ(peak.instruction_set, "amx_bf16");
  EXPECT_EQ(peak.type, DataType::bf16);
  // Tiles multiply 8 times as much per cycle as vectors of f32 at best; the clock may be lower.
  EXPECT_GT(peak.flops_per_second, 2 * measure_fma_peak(1, DataType::f32, 0.01).flops_per_second);
}

TEST(Peak, MemoryMovesBytesInSeveralPasses) {
  const Bandwidth bandwidth = measure_memory_bandwidth(1, 0.01);
  for (const PassRates& rates : {bandwidth.copy, bandwidth.read}) {
    EXPECT_GE(rates.passes, 5);
    EXPECT_GT(rates.worst, 1e6);
    EXPECT_GE(rates.median, rates.worst);
    EXPECT_GE(rates.best, rates.median);
  }
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
