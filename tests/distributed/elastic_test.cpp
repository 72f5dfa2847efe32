// Workers of `trireme train --elastic` are killed at any moment: the others finish the step, the run ends well, and its
// replay in one process has the same bits.
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/distributed/server_job.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

class Elastic : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!comm::has_transport("gRPC")) GTEST_SKIP() << "this build has no gRPC";
    ASSERT_EQ(
        run_trireme({"data", "make", "--out", data_, "--samples", "1500", "--validation-samples", "90"}).exit_code, 0);
  }

  // Steps are short; there are enough of them for the test to kill somebody in the middle. Options given take the place
  // of these.
  Words train_words(const Words& options) const {
    Words words{"train", "--data-dir", data_, "--model", "mnist", "--deterministic"};
    const std::vector<Words> usual{
        {"--batch-size", "8"}, {"--elastic", "2:4"}, {"--epochs", "2"}, {"--init-learning-rate", "0.01"}};
    for (const Words& each : usual) {
      if (std::ranges::find(options, each[0]) == options.end()) words = words + each;
    }
    return words + options;
  }
  Words launch_words(const Words& options, int workers = 4) const {
    return Words{"--workers", std::to_string(workers), "--oversubscribe", "--threads-per-worker", "1", "--"} +
           train_words(options);
  }
  std::vector<json> log_lines() const {
    std::istringstream file(read_file(log_));
    std::vector<json> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(json::parse(line));
    return lines;
  }
  // The first step has been made.
  bool trains(const LaunchedJob& job) const {
    return job.wait_for_output("trains mnist", 60s) &&
           wait_until([this] { return !train::list_checkpoints(folder_ / "checkpoints").empty(); }, 60s);
  }
  void kill_worker(const LaunchedJob& job, std::size_t rank) const {
    for (const JobProcess& process : job.processes()) {
      if (process.rank == static_cast<int>(rank)) kill(process.pid, SIGKILL);
    }
  }

  // Runs, kills these workers, each after a pause, and repeats the run.
  void lose_and_replay(const Words& options, const std::vector<std::size_t>& ranks, std::mt19937& random) {
    const Words all = options + Words{"--membership-log", log_};
    LaunchedJob job(launch_words(all + Words{"--checkpoint-dir", folder_ / "checkpoints", "--checkpoint-every", "5"}));
    ASSERT_TRUE(trains(job)) << job.err();
    for (const std::size_t rank : ranks) {
      usleep(static_cast<useconds_t>(random() % 100'000));
      kill_worker(job, rank);
    }
    ASSERT_EQ(job.exit_code(100s), 0) << job.err();
    EXPECT_TRUE(job.is_gone_within(5s));
    for (const std::size_t rank : ranks) {
      EXPECT_TRUE(has(job.err(), fmt::format("trireme: rank {} (", rank))) << job.err();
    }
    EXPECT_TRUE(has(job.err(), "was killed by signal 9 (SIGKILL); the others continue")) << job.err();
    const std::vector<json> lines = log_lines();
    ASSERT_GE(lines.size(), 3U) << read_file(log_);
    EXPECT_EQ(lines[lines.size() - 2]["workers"].size(), 4 - ranks.size()) << read_file(log_);

    const Words again = train_words(
        options + Words{"--replay", log_, "--checkpoint-dir", folder_ / "replayed", "--checkpoint-every", "5"});
    const CommandResult replayed = run_trireme(again);
    EXPECT_EQ(replayed.exit_code, 0) << replayed.err << read_file(log_);
    EXPECT_TRUE(has(replayed.out, "The weights are the same to the bit as in the run")) << replayed.out;
    const train::SafetensorsFile first(train::list_checkpoints(folder_ / "checkpoints").back());
    const train::SafetensorsFile second(train::list_checkpoints(folder_ / "replayed").back());
    ASSERT_EQ(first.names(), second.names());
    for (const std::string& name : first.names()) {  // the optimizer's state as well
      EXPECT_TRUE(std::ranges::equal(first.read(name).bytes(), second.read(name).bytes())) << name;
    }
  }

  TemporaryFolder folder_;
  std::string data_ = folder_ / "digits", log_ = folder_ / "members.jsonl";
};

class ElasticReplay : public Elastic, public ::testing::WithParamInterface<const char*> {};

TEST_P(ElasticReplay, HasTheSameBits) {
  std::mt19937 random(5);
  lose_and_replay({"--all-reduce", GetParam()}, {2}, random);
}

INSTANTIATE_TEST_SUITE_P(By, ElasticReplay, ::testing::Values("auto", "ring", "halving_doubling", "tree"),
                         [](const auto& tested) { return std::string(tested.param); });

TEST_F(Elastic, OneAfterTheOther) {
  std::mt19937 random(6);
  lose_and_replay({}, {3, 1}, random);
}

TEST_F(Elastic, WithAccumulationAndClipping) {
  std::mt19937 random(7);
  lose_and_replay({"--accumulate", "2", "--clip-norm", "1"}, {1}, random);
}

TEST_F(Elastic, WithoutALossItIsAsWithoutTheOption) {
  std::vector<std::string> checkpoints;
  for (const char* name : {"elastic", "usual"}) {
    Words words = launch_words({"--epochs", "0.2", "--checkpoint-dir", folder_ / name}, 2);
    if (std::string(name) == "usual") {
      const auto option = std::ranges::find(words, "--elastic");
      words.erase(option, option + 2);
    }
    LaunchedJob job(words);
    ASSERT_EQ(job.exit_code(100s), 0) << job.err();
    checkpoints.push_back(train::list_checkpoints(folder_ / name).back());
  }
  const train::SafetensorsFile first(checkpoints[0]), second(checkpoints[1]);
  for (const std::string& name : first.names()) {
    EXPECT_TRUE(std::ranges::equal(first.read(name).bytes(), second.read(name).bytes())) << name;
  }
}

TEST_F(Elastic, FewerThanTheLeastEndIt) {
  LaunchedJob job(launch_words({"--elastic", "4:4", "--checkpoint-dir", folder_ / "checkpoints", "--checkpoint-every",
                                "5", "--epochs", "1000"}));
  ASSERT_TRUE(trains(job)) << job.err();
  kill_worker(job, 2);
  EXPECT_EQ(job.exit_code(30s), 128 + SIGKILL) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: error: rank 2 (")) << job.err();
  EXPECT_TRUE(has(job.err(), "; 3 workers are left, and --elastic needs 4")) << job.err();
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST_F(Elastic, TheFirstWorkerIsNeeded) {
  LaunchedJob job(
      launch_words({"--checkpoint-dir", folder_ / "checkpoints", "--checkpoint-every", "5", "--epochs", "1000"}));
  ASSERT_TRUE(trains(job)) << job.err();
  kill_worker(job, 0);
  EXPECT_EQ(job.exit_code(30s), 128 + SIGKILL) << job.err();
  EXPECT_TRUE(has(job.err(), "trireme: error: rank 0 (")) << job.err();
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST_F(Elastic, TheBenchmarkGoesOn) {
  LaunchedJob job({"--workers", "3", "--oversubscribe", "--threads-per-worker", "1", "--", "bench", "--model", "mnist",
                   "--elastic", "2:3", "--num-batches", "150", "--batch-size", "8", "--num-warmup-batches", "5",
                   "--autotune", "off"});
  ASSERT_TRUE(job.wait_for_output("[0] 10\t", 60s)) << job.err();
  kill_worker(job, 1);
  EXPECT_EQ(job.exit_code(100s), 0) << job.err();
  EXPECT_TRUE(has(job.err(), "2 of 3 workers go on from step")) << job.err();
  EXPECT_TRUE(job.is_gone_within(5s));
}

TEST_F(Elastic, WhatCannotFollowALossIsRefused) {
  const auto refuses = [&](const Words& options, const std::string& reason) {
    const CommandResult result = run_trireme(Words{"launch"} + launch_words(options));
    EXPECT_EQ(result.exit_code, 2) << fmt::format("{}", fmt::join(options, " "));
    EXPECT_TRUE(has(result.err, reason)) << result.err;
  };
  refuses({"--elastic", "2"}, "MIN:MAX");
  refuses({"--elastic", "2:3"}, "there are 4 workers; start 2 to 3");
  refuses({"--protocol", "mpi"}, "MPI does not go on without a rank");
  refuses({"--shard-optimizer"}, "a lost worker has state that no other has");
  refuses({"--target-accuracy", "0.9", "--eval", "first"}, "only the first worker evaluates");
  const CommandResult replayed = run_trireme(train_words({"--replay", folder_ / "nothing"}));
  EXPECT_EQ(replayed.exit_code, 2);
  EXPECT_TRUE(has(replayed.err, "--replay")) << replayed.err;
}

}  // namespace
}  // namespace trireme::testkit
