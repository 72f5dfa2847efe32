#include "trireme/base/meeting.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace trireme {
namespace {

TEST(Meeting, WhatWasWrittenBeforeIsSeenByAllAfterwards) {
  constexpr int kMembers = 4, kRounds = 200;
  Meeting meeting(kMembers);
  std::vector<int> told(kMembers, 0);
  std::vector<int> wrong(kMembers, 0);
  std::vector<std::thread> threads;
  for (int member = 0; member < kMembers; ++member) {
    threads.emplace_back([&, member] {
      for (int round = 1; round <= kRounds; ++round) {
        told[static_cast<std::size_t>(member)] = round;
        meeting.come();
        for (const int value : told) wrong[static_cast<std::size_t>(member)] += value == round ? 0 : 1;
        meeting.come();  // all have read
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kMembers, 0));
}

TEST(Meeting, GivingUpLetsEveryoneGo) {
  Meeting meeting(3);
  std::thread first([&] { meeting.come(); });
  std::thread second([&] { meeting.come(); });
  meeting.give_up();  // the third never comes
  first.join();
  second.join();
  EXPECT_TRUE(meeting.given_up());
  meeting.come();  // nor does anyone wait from now on
}

}  // namespace
}  // namespace trireme
