#include "trireme/cluster/core_division.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"

namespace trireme::cluster {
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
  const CoreDivision division = divide_cores(kSixCores, 6, {.tasks = 3});
  EXPECT_EQ(division.processors, (Processors{{0, 1, 6, 7}, {2, 3, 8, 9}, {4, 5, 10, 11}}));
  EXPECT_EQ(division.cores_per_task, 2);
  EXPECT_EQ(division.idle_cores, 0);
  EXPECT_FALSE(division.shared);
}

TEST(CoreDivision, TasksAreEqualAndTheRestIsIdle) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.tasks = 4});
  EXPECT_EQ(division.processors, (Processors{{0, 6}, {1, 7}, {2, 8}, {3, 9}}));
  EXPECT_EQ(division.idle_cores, 2);
}

TEST(CoreDivision, KeepsToTheCoresAskedForAndToTheQuota) {
  EXPECT_EQ(divide_cores(kSixCores, 6, {.tasks = 2, .cores_per_task = 1}).processors, (Processors{{0, 6}, {1, 7}}));
  EXPECT_EQ(divide_cores(kSixCores, 3, {.tasks = 3}).processors, (Processors{{0, 6}, {1, 7}, {2, 8}}));
  EXPECT_NE(refusal({.tasks = 4}, 3).find("4 workers of 1 thread each need more than the 3 usable cores"),
            std::string::npos);
}

TEST(CoreDivision, RefusesMoreThanThereIs) {
  EXPECT_NE(refusal({.tasks = 7}).find("7 workers of 1 thread each need more than the 6 usable cores"),
            std::string::npos);
  EXPECT_NE(refusal({.tasks = 2, .cores_per_task = 4}).find("2 workers of 4 threads"), std::string::npos);
  EXPECT_NE(refusal({.tasks = 1 << 30, .cores_per_task = 1 << 30}), "");
  EXPECT_NE(refusal({.tasks = 0}), "");
  EXPECT_NE(refusal({.tasks = 1, .cores_per_task = -1}), "");
}

TEST(CoreDivision, OversubscribedTasksShareAllCoresUnbound) {
  const CoreDivision division = divide_cores(kSixCores, 6, {.tasks = 8, .oversubscribe = true});
  EXPECT_EQ(division.processors, Processors(8));
  EXPECT_TRUE(division.shared);
  EXPECT_EQ(division.cores_per_task, 1);
  // Allowed, but not needed: then cores are given out as always.
  EXPECT_FALSE(divide_cores(kSixCores, 6, {.tasks = 2, .oversubscribe = true}).shared);
}

}  // namespace
}  // namespace trireme::cluster
