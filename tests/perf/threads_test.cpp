#include "trireme/perf/threads.hpp"

#include <gtest/gtest.h>
#include <omp.h>
#include <sched.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::perf {
namespace {

// The message of the error; none: the plan was accepted.
std::string refusal(int intra_threads, int inter_threads) {
  try {
    plan_threads(intra_threads, inter_threads);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

// How many threads a plan may have here: as many inter threads as are accepted.
int usable_threads() {
  int threads = 1;
  while (refusal(1, threads + 1).empty()) ++threads;
  return threads;
}

// Where each thread of the calling thread's team may run; -1: not on one processor alone.
std::vector<int> processors_of_team() {
  std::vector<int> processors(omp_get_max_threads(), -1);
#pragma omp parallel
  {
    cpu_set_t set;
    CPU_ZERO(&set);
    sched_getaffinity(0, sizeof set, &set);
    for (int processor = 0; processor < CPU_SETSIZE && CPU_COUNT(&set) == 1; ++processor) {
      if (CPU_ISSET(processor, &set)) processors[omp_get_thread_num()] = processor;
    }
  }
  return processors;
}

TEST(Threads, OnePerUsableCoreByDefault) {
  const ThreadPlan plan = plan_threads(0, 0);
  EXPECT_EQ(plan.intra_threads, read_machine().usable_cores);
  EXPECT_EQ(plan.inter_threads, 1);
  const std::set<int> distinct(plan.cores.begin(), plan.cores.end());
  EXPECT_EQ(distinct.size(), static_cast<std::size_t>(plan.intra_threads));
}

TEST(Threads, NotBoundWhenNotAsked) {
  EXPECT_TRUE(plan_threads(1, 1, false).cores.empty());
  EXPECT_EQ(plan_threads(1, 1, false).describe(), "1 intra x 1 inter not bound");
}

TEST(Threads, DescribesProcessors) {
  const ThreadPlan plan{.intra_threads = 2, .inter_threads = 1, .cores = {0, 3}};
  EXPECT_EQ(plan.describe(), "2 intra x 1 inter on processors 0,3");
  const ThreadPlan teams{.intra_threads = 2, .inter_threads = 2, .cores = {0, 3, 1, 2}};
  EXPECT_EQ(teams.describe(), "2 intra x 2 inter on processors 0,3; 1,2");
}

TEST(Threads, RefusesMoreThanTheMachineHas) {
  EXPECT_NE(refusal(100000, 1).find("100000 intra x 1 inter"), std::string::npos);
  EXPECT_NE(refusal(100000, 1).find("usable hardware threads"), std::string::npos);
  EXPECT_NE(refusal(1, 100000).find("--num-inter-threads"), std::string::npos);
  EXPECT_NE(refusal(2147483647, 2147483647).find("usable hardware threads"), std::string::npos);
}

TEST(Threads, InterTimesIntraMustFit) {
  const int all = plan_threads(0, 1).intra_threads;
  EXPECT_NE(refusal(all, 1000).find("1000 inter"), std::string::npos);
  const ThreadPlan shared = plan_threads(0, all);
  EXPECT_EQ(shared.intra_threads, 1);
  EXPECT_EQ(shared.inter_threads, all);
}

TEST(Threads, RefusesNegativeNumbers) {
  EXPECT_NE(refusal(-1, 0).find("-1 intra"), std::string::npos);
  EXPECT_NE(refusal(0, -3).find("-3 inter"), std::string::npos);
}

TEST(Threads, ApplyBindsEachThreadToItsProcessor) {
  // In a thread of its own: the binding would stay with the rest of this program.
  std::thread([] {
    const ThreadPlan plan = plan_threads(0, 1);
    apply(plan);
    EXPECT_EQ(processors_of_team(), plan.cores);
  }).join();
}

TEST(Threads, EveryInterThreadHasProcessorsOfItsOwn) {
  if (usable_threads() < 2) GTEST_SKIP() << "needs 2 usable processors, this machine gives " << usable_threads();
  const ThreadPlan plan = plan_threads(1, 2);
  ASSERT_EQ(plan.cores.size(), 2u);
  EXPECT_NE(plan.cores[0], plan.cores[1]);
  std::thread([&plan] {
    apply(plan, 0);
    // Started by a bound thread, whose processor it inherits.
    std::thread([&plan] {
      apply(plan, 1);
      EXPECT_EQ(processors_of_team(), std::vector<int>{plan.cores[1]});
    }).join();
    EXPECT_EQ(processors_of_team(), std::vector<int>{plan.cores[0]});
  }).join();
}

TEST(Threads, TeamsOfSeveralThreadsAreBoundApart) {
  if (usable_threads() < 4) GTEST_SKIP() << "needs 4 usable processors, this machine gives " << usable_threads();
  const ThreadPlan plan = plan_threads(2, 2);
  ASSERT_EQ(plan.cores.size(), 4u);
  std::thread([&plan] {
    apply(plan, 1);
    EXPECT_EQ(processors_of_team(), std::vector<int>({plan.cores[2], plan.cores[3]}));
  }).join();
}

TEST(Threads, RefusesAnInterThreadThatWasNotPlanned) {
  std::thread([] {
    const ThreadPlan plan = plan_threads(1, 1);
    EXPECT_THROW(apply(plan, 1), Error);
    EXPECT_THROW(apply(plan, -1), Error);
  }).join();
}

TEST(Threads, ApplyWithoutBindingSetsTheTeam) {
  std::thread([] {
    apply(plan_threads(1, 1, false));
    EXPECT_EQ(omp_get_max_threads(), 1);
  }).join();
}

}  // namespace
}  // namespace trireme::perf
