// `trireme train --shard-optimizer` on real processes: checkpoints are those of workers that have the whole state, to
// the bit, and either can go on with the other's.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/cli/run_command.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/train/checkpoint.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

class ShardedOptimizer : public testing::Test {
 protected:
  void SetUp() override {
    if (default_backend() != "onednn") GTEST_SKIP() << "needs onednn";
    const Words make{"data", "make", "--out", folder_ / "digits", "--samples", "96", "--validation-samples", "30"};
    ASSERT_EQ(run_trireme(make).exit_code, 0);
  }

  // Of this number of workers, deterministic, with a batch of 24 in all; gives the last checkpoint in this folder.
  std::string train(const std::string& name, int workers, const Words& more) const {
    Words words{"--workers",
                std::to_string(workers),
                "--oversubscribe",
                "--",
                "train",
                "--model",
                "mnist",
                "--data-dir",
                folder_ / "digits",
                "--deterministic",
                "--batch-size",
                std::to_string(24 / workers),
                "--checkpoint-dir",
                folder_ / name};
    words.insert(words.end(), more.begin(), more.end());
    LaunchedJob job(words);
    EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
    const auto paths = train::list_checkpoints(folder_ / name);
    return paths.empty() ? "" : paths.back();
  }

  static void expect_equal(const std::string& a, const std::string& b) {
    ASSERT_FALSE(a.empty() || b.empty());
    const train::SafetensorsFile first(a), second(b);
    ASSERT_EQ(first.names(), second.names());
    for (const std::string& name : first.names()) {
      EXPECT_TRUE(std::ranges::equal(first.read(name).f32(), second.read(name).f32())) << name;
    }
  }

  void expect_equal_with_shards(int workers, Words options) const {
    const std::string whole = train("whole", workers, options);
    options.push_back("--shard-optimizer");
    expect_equal(train("sharded", workers, options), whole);
  }

  TemporaryFolder folder_;
};

TEST_F(ShardedOptimizer, GivesTheBitsOfAWholeOne) { expect_equal_with_shards(2, {}); }

TEST_F(ShardedOptimizer, GivesThemWithAllThatGradientsAndWeightsGoThrough) {
  expect_equal_with_shards(3, {"--optimizer", "adam", "--init-learning-rate", "0.001", "--accumulate", "2",
                               "--clip-norm", "0.5", "--average", "0.9", "--all-reduce", "ring"});
}

TEST_F(ShardedOptimizer, GivesThemOverMpi) {
  if (!comm::has_transport("MPI")) GTEST_SKIP() << "there is no MPI";
  expect_equal_with_shards(3, {"--protocol", "mpi", "--lars", "0.01", "--gradient-precision", "bf16", "--all-reduce",
                               "halving_doubling", "--batch-split", "2", "--num-intra-threads", "2"});
}

TEST_F(ShardedOptimizer, GivesThemInAStageOfAPipeline) {
  expect_equal_with_shards(
      3, {"--parallel", "hybrid:2-1", "--micro-batches", "2", "--optimizer", "adam", "--init-learning-rate", "0.001"});
}

TEST_F(ShardedOptimizer, GoesOnWithAWholeOneAndTheOtherWayRound) {
  const Words one{"--optimizer", "adam", "--epochs", "1"}, two{"--optimizer", "adam", "--epochs", "2", "--resume"};
  const auto sharded = [](Words options) {
    options.push_back("--shard-optimizer");
    return options;
  };
  train("a", 2, one);
  train("b", 2, sharded(one));
  expect_equal(train("a", 2, sharded(two)), train("b", 2, two));
  // In one process: its bits are those of one that goes on with the same checkpoint.
  train("c", 2, one);
  train("d", 2, sharded(one));
  expect_equal(train("c", 1, two), train("d", 1, two));
}

TEST_F(ShardedOptimizer, IsRefusedWhereItCannotBe) {
  const auto refusal = [&](const Words& launch, const Words& more) {
    Words words{"launch", "--oversubscribe"};
    words.insert(words.end(), launch.begin(), launch.end());
    words.insert(words.end(), {"--", "bench", "--model", "mnist", "--shard-optimizer"});
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = run_trireme(words);
    EXPECT_EQ(result.exit_code, 2) << result.err;
    return result.err;
  };
  const Words two{"--workers", "2"};
  EXPECT_NE(refusal({"--workers", "2", "--ps", "1"}, {}).find("each already has a part"), std::string::npos);
  EXPECT_NE(refusal(two, {"--variable-update", "independent"}).find("needs --variable-update all_reduce"),
            std::string::npos);
  EXPECT_NE(refusal(two, {"--forward-only"}).find("nothing is updated"), std::string::npos);
  EXPECT_NE(refusal(two, {"--device", "cuda"}).find("not with --device cuda"), std::string::npos);
  EXPECT_NE(refusal(two, {"--backend", "reference"}).find("not with --backend reference"), std::string::npos);
  EXPECT_NE(refusal(two, {"--baseline"}).find("one worker alone has a part"), std::string::npos);
  EXPECT_NE(refusal(two, {"--parallel", "auto"}).find("it plans without it"), std::string::npos);
}

}  // namespace
}  // namespace trireme::testkit
