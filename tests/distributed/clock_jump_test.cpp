// A clock that somebody sets while a job runs: waits go by steady time, so the job ends as if nothing had happened.
#include <gtest/gtest.h>

#include "tests/distributed/launched_job.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

class ClockJump : public testing::TestWithParam<Words> {};

TEST_P(ClockJump, AnHourAheadEndsNothingAndHangsNothing) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer must be the first library that is loaded";
#endif
  Words arguments = GetParam();
  const Words bench{
      "--oversubscribe",      "--", "bench",      "--model", "mnist", "--batch-size", "4", "--num-batches", "40",
      "--num-warmup-batches", "1",  "--autotune", "off"};
  arguments.insert(arguments.end(), bench.begin(), bench.end());
  // Steps of 50 ms, so that the jump comes in the middle.
  LaunchedJob job(arguments, {"LD_PRELOAD=" TRIREME_CLOCK_JUMP, "TRIREME_SLOW_RANK=0:50"});
  EXPECT_EQ(job.exit_code(60s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
  EXPECT_TRUE(job.is_gone_within(5s));
}

INSTANTIATE_TEST_SUITE_P(Of, ClockJump, testing::Values(Words{"--workers", "2"}, Words{"--workers", "2", "--ps", "1"}),
                         [](const auto& words) { return words.param.size() == 2 ? "Workers" : "Servers"; });

}  // namespace
}  // namespace trireme::testkit
