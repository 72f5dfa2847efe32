// What becomes of a job with parameter servers when one of its processes is killed.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/server_job.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

// Five seconds are what is promised; the rest is for a machine that does other things.
constexpr auto kEnd = 15s;

class LosingATask : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_protocol(GetParam())) GTEST_SKIP() << "this build has no " << GetParam();
  }
  static ServerJob job(int steps, const Words& options) {
    return {.workers = 3, .servers = 2, .protocol = GetParam(), .steps = steps, .options = options};
  }
};

// In the middle of training.
void send_signal(const LaunchedJob& job, std::size_t rank, int signal = SIGKILL) {
  ASSERT_TRUE(job.wait_for_output("[worker 0] 10\t")) << job.err();
  const auto programs = job.programs(5);
  ASSERT_EQ(programs.size(), 5U);
  ASSERT_EQ(kill(programs[rank].pid, signal), 0);
}

void expect_end_after_losing(const ServerJob& job, std::size_t rank, const std::string& name) {
  SCOPED_TRACE(fmt::format("{} with {}", name, fmt::join(job.options, " ")));
  LaunchedJob launched(launch_words(job));
  send_signal(launched, rank);
  EXPECT_EQ(launched.exit_code(kEnd), 128 + SIGKILL) << launched.err();
  EXPECT_TRUE(has(first_error(launched), "trireme: error: " + name + " (")) << launched.err();
  EXPECT_TRUE(has(first_error(launched), "was killed by signal 9 (SIGKILL)")) << launched.err();
  EXPECT_TRUE(launched.is_gone_within(5s));
}

TEST_P(LosingATask, AWorkerEndsSynchronousTraining) {
  expect_end_after_losing(job(kForEver, {}), 1, "worker 1");
  expect_end_after_losing(job(kForEver, {"--variable-update", "distributed_replicated"}), 2, "worker 2");
}

TEST_P(LosingATask, AServerEndsAllTraining) {
  expect_end_after_losing(job(kForEver, {}), 3, "ps 0");
  expect_end_after_losing(job(kForEver, {"--async"}), 4, "ps 1");
}

TEST_P(LosingATask, WorkerZeroEndsAllTraining) { expect_end_after_losing(job(kForEver, {"--async"}), 0, "worker 0"); }

TEST_P(LosingATask, AWorkerIsDoneWithoutWhereThatIsPossible) {
  for (const Words& options : {Words{"--async"}, Words{"--staleness", "1"}, Words{"--backup-workers", "1"}}) {
    SCOPED_TRACE(options[0]);
    const TemporaryFolder folder;
    // The slow one goes on for long enough that the other is killed before all are done.
    LaunchedJob launched(launch_words(job(60, options + Words{"--record", folder / "job.json"})),
                         {"TRIREME_SLOW_RANK=0:20"});
    send_signal(launched, 1);
    EXPECT_EQ(launched.exit_code(60s), 0) << launched.err();
    EXPECT_TRUE(has(launched.err(), "trireme: worker 1 (")) << launched.err();
    EXPECT_TRUE(has(launched.err(), "was killed by signal 9 (SIGKILL); the others continue")) << launched.err();
    EXPECT_TRUE(has(launched.err(), "trireme: worker 1 was lost during the run")) << launched.err();
    const nlohmann::json record = read_record(folder / "job.json");
    ASSERT_EQ(record.at("losses").size(), 2U) << "of those who are left";
    for (const auto& rank : record.at("losses")) EXPECT_EQ(rank.at(0).size(), 60U);
    EXPECT_TRUE(launched.is_gone_within(5s));
  }
}

TEST_P(LosingATask, AStoppedOneIsNamed) {
  const ServerJob impatient = job(kForEver, {"--comm-timeout", "2"});
  LaunchedJob worker(launch_words(impatient));
  send_signal(worker, 1, SIGSTOP);
  EXPECT_EQ(worker.exit_code(30s), 1) << worker.err();
  EXPECT_TRUE(has(first_error(worker), "worker 1 (")) << worker.err();
  EXPECT_TRUE(worker.is_gone_within(5s));

  LaunchedJob server(launch_words(impatient));
  send_signal(server, 3, SIGSTOP);
  EXPECT_EQ(server.exit_code(30s), 1) << server.err();
  EXPECT_TRUE(has(first_error(server), "ps 0 (")) << server.err();
  EXPECT_TRUE(server.is_gone_within(5s));
}

std::string protocol_name(const ::testing::TestParamInfo<const char*>& info) {
  return std::string(info.param) == "grpc" ? "Grpc" : "Ucx";
}

INSTANTIATE_TEST_SUITE_P(Over, LosingATask, ::testing::Values("grpc", "grpc+ucx"), protocol_name);

}  // namespace
}  // namespace trireme::testkit
