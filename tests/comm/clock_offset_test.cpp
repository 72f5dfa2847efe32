#include "trireme/comm/clock_offset.hpp"

#include <gtest/gtest.h>

#include "trireme/comm/local/run_local.hpp"

namespace trireme::comm {
namespace {

TEST(ClockOffset, OfOneClockIsNoMoreThanTheAnswersTake) {
  run_local(3, [](Communicator& communicator) {
    if (communicator.rank() > 0) return answer_clock_questions(communicator, 0, 5);
    for (const int other : {1, 2}) {
      const ClockOffset measured = measure_clock_offset(communicator, other, 5);
      EXPECT_GT(measured.round_trip, 0);
      EXPECT_LE(std::llabs(measured.offset), measured.round_trip / 2 + 1);
      EXPECT_GT(measured.at, 0);
    }
  });
}

TEST(ClockOffset, IsTakenOffWithItsDrift) {
  const ClockOffset begin{.at = 1'000'000, .offset = 500};
  const ClockOffset end{.at = 3'000'000, .offset = 700};
  EXPECT_EQ(to_own_clock(1'000'000, begin, end), 999'500);
  EXPECT_EQ(to_own_clock(2'000'000, begin, end), 1'999'400);
  EXPECT_EQ(to_own_clock(3'000'000, begin, end), 2'999'300);
  EXPECT_EQ(to_own_clock(5'000'000, begin, end), 4'999'100);  // goes on as it went
  // Measured once.
  EXPECT_EQ(to_own_clock(2'000'000, begin, begin), 1'999'500);
}

}  // namespace
}  // namespace trireme::comm
