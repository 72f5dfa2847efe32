// Pipelines in which a stage dies, stands still, falls behind or is interrupted: the right one is named, and nothing is
// left running.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/distributed/launched_job.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

// Of three stages.
Words bench_stages(const std::string& steps, const Words& options = {}) {
  Words words{"--workers", "3", "--oversubscribe", "--", "bench", "--autotune", "off", "--num-warmup-batches", "0"};
  words.insert(words.end(), {"--model", "mnist", "--batch-size", "4", "--parallel", "pipeline:3"});
  words.insert(words.end(), {"--num-batches", steps});
  words.insert(words.end(), options.begin(), options.end());
  return words;
}
const char* const kEndless = "1000000";

TEST(PipelineFailures, AKilledStageIsNamed) {
  LaunchedJob job(bench_stages(kEndless));
  ASSERT_TRUE(job.wait_for_output("[0] 10\t")) << job.err();
  kill(job.programs(3)[1].pid, SIGKILL);
  EXPECT_EQ(job.exit_code(5s), 128 + SIGKILL);
  EXPECT_TRUE(has(first_error(job), "rank 1 (")) << job.err();
  EXPECT_TRUE(has(first_error(job), "was killed by signal 9")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

// In the middle, and at the end: the first stage waits for the second one then, which is not to blame.
TEST(PipelineFailures, AStoppedStageIsNamedAndNotOneThatWaitsForIt) {
  for (const std::size_t stopped : {1, 2}) {
    LaunchedJob job(bench_stages(kEndless, {"--comm-timeout", "2"}));
    ASSERT_TRUE(job.wait_for_output("[0] 10\t")) << job.err();
    kill(job.programs(3)[stopped].pid, SIGSTOP);
    EXPECT_TRUE(job.wait_for_output(fmt::format("trireme: rank {} (", stopped))) << job.err();
    EXPECT_EQ(job.exit_code(30s), 1);
    EXPECT_TRUE(has(first_error(job), fmt::format("; rank {} (", stopped))) << job.err();
    EXPECT_TRUE(has(first_error(job), ") is stopped, stuck or unreachable")) << job.err();
    EXPECT_TRUE(has(first_error(job), " of micro-batch ") || has(first_error(job), "the loss of a step")) << job.err();
    EXPECT_FALSE(has(job.err(), fmt::format("; rank {} (", 3 - stopped))) << job.err();
    EXPECT_TRUE(job.is_gone_within(1s));
  }
}

TEST(PipelineFailures, ASlowStageIsNamed) {
  LaunchedJob job(bench_stages("5"), {"TRIREME_SLOW_RANK=1:300"});
  EXPECT_EQ(job.exit_code(60s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "longest:     stage 1: rank 1 (")) << job.out();
}

TEST(PipelineFailures, CtrlCEndsAllStagesAfterTheSameStepWithResults) {
  LaunchedJob job(bench_stages(kEndless));
  ASSERT_TRUE(job.wait_for_output("[0] 10\t")) << job.err();
  kill(job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(20s), 130) << job.err();
  EXPECT_TRUE(has(job.out(), "interrupted: ")) << job.out();
  EXPECT_TRUE(has(job.out(), "total images/sec")) << job.out();
  EXPECT_TRUE(job.is_gone_within(1s));
}

}  // namespace
}  // namespace trireme::testkit
