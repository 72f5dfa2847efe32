// Training with parameter servers in real processes: the results are those of one process, for every protocol.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/server_job.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

constexpr int kGlobalBatch = 12;
// Sums over workers are in another order than sums over the images of one batch.
constexpr double kTolerance = 1e-4;

std::vector<double> losses_of_one_process(const TemporaryFolder& folder) {
  const std::string record = folder / "one.json";
  RunningCommand one({"bench", "--model", "mnist", "--autotune", "off", "--num-warmup-batches", "0", "--num-batches",
                      "20", "--batch-size", std::to_string(kGlobalBatch), "--record", record});
  EXPECT_EQ(one.exit_code(60s), 0) << one.err();
  return mean_losses(read_record(record));
}

class ParameterServer : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!has_protocol(GetParam())) GTEST_SKIP() << "this build has no " << GetParam();
  }
};

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
  const std::string protocol = info.param;
  return protocol == "grpc" ? "Grpc" : protocol == "grpc+ucx" ? "Ucx" : "Mpi";
}

// Every number of servers with every number of workers once over the three protocols; every placement with each
// protocol, each number of servers and each number of workers; both modes with each of all these.
TEST_P(ParameterServer, TrainsLikeOneProcess) {
  static constexpr const char* kPlacements[] = {"round_robin", "greedy", "split"};
  const TemporaryFolder folder;
  const std::vector<double> expected = losses_of_one_process(folder);
  const auto protocol = static_cast<int>(
      std::find(std::begin(kProtocols), std::end(kProtocols), std::string(GetParam())) - std::begin(kProtocols));
  for (int workers = 1; workers <= 4; ++workers) {
    const int servers = (protocol + 2 * workers) % 3 + 1;
    const char* placement = kPlacements[(protocol + workers) % 3];
    const bool replicated = (workers + protocol) % 2 == 0;
    const char* update = replicated ? "distributed_replicated" : "parameter_server";
    SCOPED_TRACE(fmt::format("{} workers, {} servers, {}, {}", workers, servers, placement, update));
    const ServerJob job{.workers = workers,
                        .servers = servers,
                        .protocol = GetParam(),
                        .batch_size = kGlobalBatch / workers,
                        .options = {"--placement", placement, "--variable-update", update}};
    const nlohmann::json record = read_record(run_to_record(job, folder / "job.json"));
    expect_same_losses(mean_losses(record), expected, kTolerance);
    EXPECT_EQ(record.at("config").at("variable_update"), update);
    EXPECT_EQ(record.at("results").at("servers").size(), static_cast<std::size_t>(servers));
    EXPECT_EQ(record.at("results").at("servers").at(0).at("max_staleness"), 0);
  }
}

TEST_P(ParameterServer, TrainsLikeAllReduce) {
  const TemporaryFolder folder;
  const std::string record = folder / "all_reduce.json";
  LaunchedJob all_reduce({"--workers", "3", "--oversubscribe", "--", "bench", "--model", "mnist", "--autotune", "off",
                          "--num-warmup-batches", "0", "--num-batches", "20", "--batch-size", "4", "--record", record});
  EXPECT_EQ(all_reduce.exit_code(60s), 0) << all_reduce.err();
  const std::vector<double> expected = mean_losses(read_record(record));
  for (const char* update : {"parameter_server", "distributed_replicated"}) {
    const ServerJob job{.workers = 3,
                        .servers = 2,
                        .protocol = GetParam(),
                        .batch_size = 4,
                        .options = {"--variable-update", update, "--check-replicas", "5"}};
    expect_same_losses(mean_losses(read_record(run_to_record(job, folder / "job.json"))), expected, kTolerance);
  }
}

TEST_P(ParameterServer, RepeatsToTheBit) {
  const TemporaryFolder folder;
  const ServerJob job{.workers = 3, .servers = 2, .protocol = GetParam(), .options = {"--deterministic"}};
  const auto first = read_record(run_to_record(job, folder / "1.json"));
  EXPECT_EQ(read_record(run_to_record(job, folder / "2.json")).at("losses"), first.at("losses"));
}

TEST_P(ParameterServer, CountsTheBytesOfAStepExactly) {
  const TemporaryFolder folder;
  const ServerJob job{.workers = 2, .servers = 2, .protocol = GetParam()};
  const auto servers = read_record(run_to_record(job, folder / "job.json")).at("results").at("servers");
  for (const nlohmann::json& server : servers) {
    const double bytes = server.at("variable_bytes").get<double>();
    EXPECT_EQ(server.at("bytes_received_per_step"), 2 * bytes) << "gradients of two workers";
    EXPECT_EQ(server.at("bytes_sent_per_step"), 2 * bytes) << "values for two workers";
  }
}

INSTANTIATE_TEST_SUITE_P(Over, ParameterServer, ::testing::ValuesIn(kProtocols), name_of);

class ParameterServerModes : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_protocol("grpc")) GTEST_SKIP() << "this build has no gRPC";
  }
};

TEST_F(ParameterServerModes, NobodyIsFurtherAheadThanTheBound) {
  for (const char* bound : {"0", "1"}) {
    const TemporaryFolder folder;
    ServerJob job{.workers = 3, .servers = 2, .options = {"--staleness", bound, "--record", folder / "job.json"}};
    LaunchedJob launched(launch_words(job), {"TRIREME_SLOW_RANK=0:20"});
    ASSERT_EQ(launched.exit_code(60s), 0) << launched.err();
    const auto record = read_record(folder / "job.json");
    for (const auto& server : record.at("results").at("servers")) {
      EXPECT_LE(server.at("max_lead"), std::stoi(bound));
      EXPECT_GT(server.at("updates"), 0);
    }
  }
}

TEST_F(ParameterServerModes, WithoutABoundFastWorkersRunAhead) {
  const TemporaryFolder folder;
  ServerJob job{.workers = 3, .servers = 2, .options = {"--async", "--record", folder / "job.json"}};
  LaunchedJob launched(launch_words(job), {"TRIREME_SLOW_RANK=0:100"});
  ASSERT_EQ(launched.exit_code(60s), 0) << launched.err();
  const auto results = read_record(folder / "job.json").at("results");
  for (const auto& server : results.at("servers")) {
    EXPECT_GT(server.at("max_lead"), 1) << "the counter that bounds are checked by counts";
    EXPECT_GT(server.at("max_staleness"), 0);
  }
}

TEST_F(ParameterServerModes, BackupWorkersDropWhatComesTooLate) {
  const TemporaryFolder folder;
  ServerJob job{.workers = 3, .servers = 1, .options = {"--backup-workers", "1", "--record", folder / "job.json"}};
  LaunchedJob launched(launch_words(job), {"TRIREME_SLOW_RANK=1:100"});
  ASSERT_EQ(launched.exit_code(60s), 0) << launched.err();
  EXPECT_GT(read_record(folder / "job.json").at("results").at("servers").at(0).at("dropped_gradients"), 0);
}

// Both ways of ending early, for all who train together and all who do not.
class EndingEarly : public ::testing::TestWithParam<std::vector<std::string>> {
 protected:
  void SetUp() override {
    if (!has_protocol("grpc")) GTEST_SKIP() << "this build has no gRPC";
  }
  ServerJob job() const {
    return {.workers = 2, .servers = 2, .steps = kForEver, .options = GetParam() + Words{"--record", record_}};
  }
  nlohmann::json record() const { return read_record(record_); }

 private:
  const TemporaryFolder folder_;
  const std::string record_ = folder_ / "job.json";
};

TEST_P(EndingEarly, CtrlCEndsAllWithARecord) {
  LaunchedJob launched(launch_words(job()));
  ASSERT_TRUE(launched.wait_for_output("[worker 0] 10\t")) << launched.err();
  kill(launched.pid(), SIGINT);
  EXPECT_EQ(launched.exit_code(20s), 130) << launched.err();
  EXPECT_TRUE(has(launched.out(), "interrupted: ")) << launched.out();
  EXPECT_FALSE(has(launched.err(), "error")) << launched.err();
  EXPECT_EQ(record().at("interrupted"), true);
  EXPECT_EQ(record().at("losses").size(), 2U);
  EXPECT_TRUE(launched.is_gone_within(5s));
}

TEST_P(EndingEarly, MaxSecondsEndsAll) {
  ServerJob limited = job();
  limited.options = limited.options + Words{"--max-seconds", "1"};
  LaunchedJob launched(launch_words(limited));
  EXPECT_EQ(launched.exit_code(30s), 0) << launched.err();
  EXPECT_TRUE(has(launched.out(), "time is up (--max-seconds)")) << launched.out();
  EXPECT_FALSE(has(launched.err(), "error")) << launched.err();
  EXPECT_EQ(record().at("losses").size(), 2U);
  EXPECT_TRUE(launched.is_gone_within(5s));
}

std::string mode_name(const ::testing::TestParamInfo<Words>& info) {
  static constexpr const char* kNames[] = {"Sync", "Async", "Staleness", "BackupWorkers", "Replicated"};
  return kNames[info.index];
}

INSTANTIATE_TEST_SUITE_P(Mode, EndingEarly,
                         ::testing::Values(Words{"--sync"}, Words{"--async"}, Words{"--staleness", "1"},
                                           Words{"--backup-workers", "1"},
                                           Words{"--variable-update", "distributed_replicated"}),
                         mode_name);

}  // namespace
}  // namespace trireme::testkit
