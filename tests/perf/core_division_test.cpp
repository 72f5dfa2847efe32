#include "trireme/perf/core_division.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::perf {
namespace {

using Processors = std::vector<std::vector<int>>;
const Processors kSixCores{{0, 6}, {1, 7}, {2, 8}, {3, 9}, {4, 10}, {5, 11}};

std::string refusal(const CoreDemand& demand, int limit = 6) {
  try {
    divide_cores(kSixCores, limit, demand);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(CoreDivision, GivesEachTaskNeighbouringCoresWithAllTheirProcessors) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.workers = 3});
  EXPECT_EQ(division.workers, (Processors{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}));
  EXPECT_EQ(division.cores_per_worker, 2);
  EXPECT_EQ(division.idle_cores, 0);
  EXPECT_FALSE(division.shared);
}

TEST(CoreDivision, TasksAreEqualAndTheRestIsIdle) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.workers = 4});
  EXPECT_EQ(division.workers, (Processors{{0, 6}, {1, 7}, {2, 8}, {3, 9}}));
  EXPECT_EQ(division.idle_cores, 2);
}

TEST(CoreDivision, KeepsToTheCoresAskedForAndToTheQuota) {
  EXPECT_EQ(divide_cores(kSixCores, 6, {.workers = 2, .cores_per_worker = 1}).workers, (Processors{{0, 6}, {1, 7}}));
  EXPECT_EQ(divide_cores(kSixCores, 3, {.workers = 3}).workers, (Processors{{0, 6}, {1, 7}, {2, 8}}));
  EXPECT_NE(refusal({.workers = 4}, 3).find("4 workers of 1 thread each need more than the 3 usable cores"),
            std::string::npos);
}

TEST(CoreDivision, RefusesMoreThanThereIs) {
  EXPECT_NE(refusal({.workers = 7}).find("7 workers of 1 thread each need more than the 6 usable cores"),
            std::string::npos);
  EXPECT_NE(refusal({.workers = 2, .cores_per_worker = 4}).find("2 workers of 4 threads"), std::string::npos);
  EXPECT_NE(refusal({.workers = 1 << 30, .cores_per_worker = 1 << 30}), "");
  EXPECT_NE(refusal({.workers = 0}), "");
  EXPECT_NE(refusal({.workers = 1, .cores_per_worker = -1}), "");
}

TEST(CoreDivision, OversubscribedTasksShareAllCoresUnbound) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.workers = 8, .oversubscribe = true});
  EXPECT_EQ(division.workers, Processors(8));
  EXPECT_TRUE(division.shared);
  EXPECT_EQ(division.cores_per_worker, 1);
  // Allowed, but not needed: then cores are given out as always.
  EXPECT_FALSE(divide_cores(kSixCores, 6, {.workers = 2, .oversubscribe = true}).shared);
}

// Cores of one processor each.
Processors plain_cores(int count) {
  Processors cores;
  for (int i = 0; i < count; ++i) cores.push_back({i});
  return cores;
}

TEST(CoreDivision, ServersShareTheCoresOfFewWorkers) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.workers = 2, .servers = 2, .cores_per_worker = 2});
  EXPECT_EQ(division.workers, (Processors{{0, 1, 6, 7}, {2, 3, 8, 9}}));
  const std::vector<int> all{0, 1, 2, 3, 6, 7, 8, 9};
  EXPECT_EQ(division.servers, (Processors{all, all}));
  EXPECT_EQ(division.cores_per_server, 0);
  EXPECT_EQ(division.idle_cores, 2);
}

TEST(CoreDivision, ServersMayHaveCoresOfTheirOwn) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.workers = 2, .servers = 2, .cores_per_server = 1});
  EXPECT_EQ(division.workers, (Processors{{0, 1, 6, 7}, {2, 3, 8, 9}}));
  EXPECT_EQ(division.servers, (Processors{{4, 10}, {5, 11}}));
  EXPECT_EQ(division.cores_per_server, 1);
  EXPECT_EQ(division.idle_cores, 0);
}

TEST(CoreDivision, OfManyCoresEachServerGetsOne) {
  const CoreDivision division = divide_cores(plain_cores(16), 16, {.workers = 2, .servers = 2});
  EXPECT_EQ(division.cores_per_server, 1);
  EXPECT_EQ(division.cores_per_worker, 7);
  EXPECT_EQ(division.servers, (Processors{{14}, {15}}));
  EXPECT_EQ(divide_cores(plain_cores(15), 15, {.workers = 2, .servers = 2}).cores_per_server, 0);
  EXPECT_EQ(divide_cores(plain_cores(16), 16, {.workers = 2, .servers = 2, .cores_per_server = 0}).cores_per_server, 0);
  EXPECT_EQ(divide_cores(plain_cores(16), 16, {.workers = 2, .servers = 2, .cores_per_worker = 8}).cores_per_server, 0)
      << "not at the cost of what was asked for";
}

TEST(CoreDivision, RefusesServersThatDoNotFit) {
  EXPECT_NE(refusal({.workers = 4, .servers = 1, .cores_per_server = 3})
                .find("4 workers of 1 thread and 1 server of 3 threads each need more than the 6 usable cores"),
            std::string::npos);
  EXPECT_NE(refusal({.workers = 1, .servers = 1 << 30, .cores_per_server = 1 << 30}), "");
  EXPECT_NE(refusal({.workers = 1, .servers = -1}).find("--ps -1"), std::string::npos);
  EXPECT_NE(refusal({.workers = 1, .servers = 1, .cores_per_server = -1}).find("--threads-per-ps -1"),
            std::string::npos);
  EXPECT_NE(refusal({.workers = 1, .cores_per_server = 1}).find("without --ps"), std::string::npos);
  const CoreDivision division =
      divide_cores(kSixCores, 6, {.workers = 6, .servers = 1, .cores_per_server = 1, .oversubscribe = true});
  EXPECT_TRUE(division.shared);
  EXPECT_EQ(division.workers, Processors(6));
  EXPECT_EQ(division.servers, Processors(1));
}

}  // namespace
}  // namespace trireme::perf
