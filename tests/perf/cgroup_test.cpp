#include "trireme/perf/cgroup.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "tests/support/temporary_folder.hpp"

namespace trireme::perf {
namespace {

namespace fs = std::filesystem;

// A folder that looks like /sys/fs/cgroup, gone after the test.
class Cgroup : public ::testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) const {
    fs::create_directories((root_.path() / path).parent_path());
    std::ofstream(root_.path() / path) << text;
  }
  std::optional<double> quota() const { return cpu_quota(root_.path() / "membership", root_.path() / "mount"); }
  std::optional<double> memory() const { return memory_left(root_.path() / "membership", root_.path() / "mount"); }

 private:
  testkit::TemporaryFolder root_;
};

TEST_F(Cgroup, NothingThereMeansNoQuota) { EXPECT_EQ(quota(), std::nullopt); }

TEST_F(Cgroup, SecondGenerationTakesTheSmallestOnTheWayUp) {
  write("membership", "0::/outer/inner\n");
  write("mount/outer/cpu.max", "150000 100000\n");
  write("mount/outer/inner/cpu.max", "400000 100000\n");
  EXPECT_EQ(quota(), 1.5);
}

TEST_F(Cgroup, SecondGenerationWithoutLimit) {
  write("membership", "0::/\n");
  write("mount/cpu.max", "max 100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST_F(Cgroup, ContainerThatSeesOnlyItsOwnGroupAtTheMount) {
  write("membership", "0::/system.slice/container-1234\n");
  write("mount/cpu.max", "200000 100000\n");
  EXPECT_EQ(quota(), 2.0);
}

TEST_F(Cgroup, FirstGeneration) {
  write("membership", "5:memory:/box\n4:cpu,cpuacct:/box\n");
  write("mount/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  write("mount/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  write("mount/cpu,cpuacct/box/cpu.cfs_quota_us", "50000\n");
  write("mount/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), 0.5);
}

TEST_F(Cgroup, OtherControllersDoNotCount) {
  write("membership", "3:cpuset:/box\n");
  write("mount/cpuset/box/cpu.cfs_quota_us", "50000\n");
  write("mount/cpuset/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota(), std::nullopt);
}

TEST(WithinQuota, WholeThreadsAndAtLeastOne) {
  EXPECT_EQ(within_quota(8, std::nullopt), 8);
  EXPECT_EQ(within_quota(8, 3.9), 3);
  EXPECT_EQ(within_quota(8, 0.5), 1);
  EXPECT_EQ(within_quota(2, 16.0), 2);
}

TEST_F(Cgroup, NothingThereMeansNoLimitOfMemory) {
  EXPECT_EQ(memory(), std::nullopt);
  write("membership", "0::/outer\n");
  write("mount/outer/memory.max", "max\n");
  write("mount/outer/memory.current", "5000\n");
  EXPECT_EQ(memory(), std::nullopt);
}

// Files that are kept in memory give way.
TEST_F(Cgroup, MemoryIsWhatTheNearestLimitLeaves) {
  write("membership", "0::/outer/inner\n");
  write("mount/outer/memory.max", "10000\n");
  write("mount/outer/memory.current", "9000\n");
  write("mount/outer/memory.stat", "anon 5000\ninactive_file 1500\nactive_file 500\n");
  write("mount/outer/inner/memory.max", "8000\n");
  write("mount/outer/inner/memory.current", "1000\n");
  write("mount/outer/inner/memory.stat", "anon 1000\n");
  EXPECT_EQ(memory(), 3000);
}

TEST_F(Cgroup, MemoryOfTheFirstGeneration) {
  write("membership", "5:memory:/job\n4:cpu,cpuacct:/job\n");
  write("mount/memory/memory.limit_in_bytes", "9223372036854771712\n");  // none
  write("mount/memory/memory.usage_in_bytes", "123456\n");
  write("mount/memory/job/memory.limit_in_bytes", "10000\n");
  write("mount/memory/job/memory.usage_in_bytes", "4000\n");
  write("mount/memory/job/memory.stat", "total_inactive_file 1000\n");
  EXPECT_EQ(memory(), 7000);
}

}  // namespace
}  // namespace trireme::perf
