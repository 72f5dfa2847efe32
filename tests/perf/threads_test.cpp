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
    std::vector<int> seen(plan.cores.size(), -1), counts(plan.cores.size(), 0);
    int team = 0;
#pragma omp parallel
    {
      cpu_set_t set;
      sched_getaffinity(0, sizeof set, &set);
      const auto thread = static_cast<std::size_t>(omp_get_thread_num());
      counts[thread] = CPU_COUNT(&set);
      for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
        if (CPU_ISSET(processor, &set)) seen[thread] = processor;
      }
#pragma omp single
      team = omp_get_num_threads();
    }
    EXPECT_EQ(team, plan.intra_threads);
    EXPECT_EQ(counts, std::vector<int>(plan.cores.size(), 1));
    EXPECT_EQ(seen, plan.cores);
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
