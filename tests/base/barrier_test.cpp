#include "trireme/base/barrier.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace trireme {
namespace {

TEST(Barrier, WhatWasWrittenBeforeIsSeenByAllAfterwards) {
  constexpr int kMembers = 4, kRounds = 200;
  Barrier barrier(kMembers);
  std::vector<int> told(kMembers, 0);
  std::vector<int> wrong(kMembers, 0);
  std::vector<std::thread> threads;
  for (int member = 0; member < kMembers; ++member) {
    threads.emplace_back([&, member] {
      for (int round = 1; round <= kRounds; ++round) {
        told[member] = round;
        barrier.arrive_and_wait();
        for (const int value : told) wrong[member] += value == round ? 0 : 1;
        barrier.arrive_and_wait();  // all have read
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kMembers, 0));
}

TEST(Barrier, GivingUpLetsEveryoneGo) {
  Barrier barrier(3);
  std::thread first([&] { barrier.arrive_and_wait(); });
  std::thread second([&] { barrier.arrive_and_wait(); });
  barrier.abandon();  // the third never comes
  first.join();
  second.join();
  EXPECT_TRUE(barrier.abandoned());
  barrier.arrive_and_wait();  // nor does anyone wait from now on
}

}  // namespace
}  // namespace trireme
