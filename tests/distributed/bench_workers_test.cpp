// `trireme bench` on several real processes: the results are those of one process, and what goes wrong with a worker is
// said with its rank.
#include <gtest/gtest.h>
#include <signal.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "tests/distributed/bench_record.hpp"
#include "tests/distributed/launched_job.hpp"
#include "tests/support/idx_files.hpp"
#include "tests/support/temporary_folder.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::testkit {
namespace {

using namespace std::chrono_literals;

bool has_mpi() { return comm::has_transport("MPI"); }

class BenchWorkers : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_mpi()) GTEST_SKIP() << "needs MPI";
  }
};

Words bench(int workers, const Words& options) {
  Words words{"--workers", std::to_string(workers), "--oversubscribe", "--", "bench", "--autotune", "off"};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

nlohmann::json run(int workers, Words options, const std::filesystem::path& record) {
  options.insert(options.end(), {"--record", record.string(), "--num-warmup-batches", "0", "--num-batches", "20"});
  LaunchedJob job(bench(workers, options));
  EXPECT_EQ(job.exit_code(100s), 0) << job.err() << job.out();
  return read_record(record);
}

TEST_F(BenchWorkers, TrainLikeOneOnADataSet) {
  const TemporaryFolder folder;
  write_idx(folder.path(), 101);  // a batch reaches from one epoch into the next
  const Words data{"--model", "mnist", "--data-dir", folder.path().string(), "--batch-size"};
  const auto with_batch = [&](int batch) {
    Words options = data;
    options.push_back(std::to_string(batch));
    return options;
  };
  const auto one = mean_losses(run(1, with_batch(12), folder.path() / "1.json"));
  for (const int workers : {2, 3}) {
    const nlohmann::json record = run(workers, with_batch(12 / workers), folder.path() / "n.json");
    expect_same_losses(mean_losses(record), one, 1e-4);
    for (const nlohmann::json& rank : record.at("results").at("breakdown")) EXPECT_GT(rank.at("input_wait"), 0.0);
  }
}

TEST_F(BenchWorkers, TrainLikeOneWithTheirBatches) {
  const TemporaryFolder folder;
  const auto one = mean_losses(run(1, {"--model", "mnist", "--batch-size", "12"}, folder.path() / "1.json"));
  for (const int workers : {2, 3, 4}) {
    const nlohmann::json record =
        run(workers, {"--model", "mnist", "--batch-size", std::to_string(12 / workers)}, folder.path() / "n.json");
    const auto many = mean_losses(record);
    expect_same_losses(many, one, 1e-4);
    EXPECT_EQ(record.at("cluster").size(), static_cast<std::size_t>(workers));
    EXPECT_EQ(record.at("steps").size(), static_cast<std::size_t>(workers));
    EXPECT_EQ(record.at("results").at("breakdown").size(), static_cast<std::size_t>(workers));
    EXPECT_EQ(record.at("config").at("variable_update"), "all_reduce");
  }
}

TEST_F(BenchWorkers, TrainAlikeWithEveryAlgorithm) {
  const TemporaryFolder folder;
  const Words common{"--model", "mnist", "--batch-size", "4"};
  const auto expected = mean_losses(run(3, common, folder.path() / "a.json"));
  const std::vector<Words> settings{{"--all-reduce", "ring"},
                                    {"--all-reduce", "halving_doubling", "--overlap", "off"},
                                    {"--all-reduce", "library"},
                                    {"--bucket-mb", "0.5", "--check-replicas", "5"}};
  for (Words options : settings) {
    options.insert(options.end(), common.begin(), common.end());
    expect_same_losses(mean_losses(run(3, options, folder.path() / "b.json")), expected, 1e-4);
  }
}

TEST_F(BenchWorkers, SyncBatchNormIsThatOfTheWholeBatch) {
  const TemporaryFolder folder;
  const auto one = mean_losses(run(1, {"--model", "resnet20", "--batch-size", "8"}, folder.path() / "1.json"));
  const auto two =
      mean_losses(run(2, {"--model", "resnet20", "--batch-size", "4", "--sync-batch-norm"}, folder.path() / "2.json"));
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(two[i], one[i], 2e-3 * one[i]) << "step " << i;
}

TEST_F(BenchWorkers, DeterministicRunsRepeatToTheBit) {
  const TemporaryFolder folder;
  const Words options{"--model", "resnet20", "--batch-size", "4", "--deterministic"};
  EXPECT_EQ(mean_losses(run(3, options, folder.path() / "1.json")),
            mean_losses(run(3, options, folder.path() / "2.json")));
}

TEST_F(BenchWorkers, BaselinesAreMeasuredInTheSameRun) {
  const TemporaryFolder folder;
  const auto results =
      run(2, {"--model", "mnist", "--batch-size", "4", "--baseline"}, folder.path() / "b.json").at("results");
  const nlohmann::json &efficiency = results.at("scaling_efficiency"), &share = results.at("share_of_independent");
  ASSERT_EQ(efficiency.is_null(), share.is_null());
  if (!efficiency.is_null()) {  // on a busy machine the baselines may contradict each other
    EXPECT_GT(efficiency.get<double>(), 0);
    EXPECT_GT(share.get<double>(), 0);
  }
  EXPECT_EQ(results.at("independent_images_per_second").size(), 1u);
  EXPECT_EQ(results.at("alone_images_per_second").size(), 1u);
}

TEST_F(BenchWorkers, ASlowOneIsNamed) {
  LaunchedJob job(bench(3, {"--model", "mnist", "--batch-size", "2", "--num-batches", "10"}),
                  {"TRIREME_SLOW_RANK=1:300"});
  EXPECT_EQ(job.exit_code(60s), 0) << job.err();
  EXPECT_TRUE(has(job.out(), "slow: rank 1 (")) << job.out();
}

TEST_F(BenchWorkers, AStoppedOneIsNamedWithHostAndBucket) {
  LaunchedJob job(
      bench(2, {"--model", "mnist", "--batch-size", "2", "--num-batches", "1000000", "--comm-timeout", "2"}));
  ASSERT_TRUE(job.wait_for_output("[0] 10\t"));
  kill(job.programs(2)[1].pid, SIGSTOP);
  EXPECT_EQ(job.exit_code(20s), 1);
  EXPECT_TRUE(has(job.err(), "rank 1 (")) << job.err();
  EXPECT_TRUE(has(job.err(), "bucket ")) << job.err();
  EXPECT_TRUE(has(job.err(), "did not complete within 2")) << job.err();
  EXPECT_TRUE(job.is_gone_within(1s));
}

TEST_F(BenchWorkers, AStoppedOneIsNamedInTheMiddleOfBatchNorm) {
  LaunchedJob job(bench(2, {"--model", "resnet20", "--batch-size", "2", "--num-batches", "1000000", "--comm-timeout",
                            "2", "--sync-batch-norm"}));
  ASSERT_TRUE(job.wait_for_output("[0] 10\t"));
  kill(job.programs(2)[1].pid, SIGSTOP);
  EXPECT_EQ(job.exit_code(20s), 1);
  EXPECT_TRUE(has(job.err(), "with rank 1 (")) << job.err();
  EXPECT_TRUE(has(job.err(), "did not complete within 2")) << job.err();
}

TEST_F(BenchWorkers, AKilledOneEndsTheOthersWhereverTheyAre) {
  std::mt19937 random(20261115);
  for (int round = 0; round < 12; ++round) {
    LaunchedJob job(bench(3, {"--model", "mnist", "--batch-size", "1", "--num-batches", "60"}));
    const auto programs = job.programs(3);
    ASSERT_EQ(programs.size(), 3u);
    const auto victim = std::uniform_int_distribution<std::size_t>(0, 2)(random);
    std::this_thread::sleep_for(std::chrono::milliseconds(std::uniform_int_distribution<int>(0, 3000)(random)));
    if (kill(programs[victim].pid, SIGKILL) != 0) continue;  // it was done already
    const int code = job.exit_code(5s);
    // Killed in the very last moment, after all was said.
    if (code != 0) {
      EXPECT_EQ(code, 128 + SIGKILL) << job.err();
      EXPECT_TRUE(has(job.err(), "rank " + std::to_string(victim))) << job.err();
    }
    EXPECT_TRUE(job.is_gone_within(1s)) << "round " << round;
  }
}

TEST_F(BenchWorkers, CtrlCEndsAllAfterTheSameStepWithResults) {
  LaunchedJob job(bench(2, {"--model", "mnist", "--batch-size", "2", "--num-batches", "1000000"}));
  ASSERT_TRUE(job.wait_for_output("[0] 10\t"));
  kill(job.pid(), SIGINT);
  EXPECT_EQ(job.exit_code(20s), 130) << job.err();
  EXPECT_TRUE(has(job.out(), "interrupted: ")) << job.out();
  EXPECT_TRUE(has(job.out(), "identical to the bit")) << job.out();
}

TEST_F(BenchWorkers, DifferentOptionsAreNamed) {
  LaunchedJob job({"--workers", "2", "--oversubscribe", "--program", "/bin/sh", "--", "-c",
                   "exec " TRIREME_BINARY " bench --model mnist --batch-size $((TRIREME_TASK_INDEX + 3))"});
  EXPECT_EQ(job.exit_code(30s), 2);
  EXPECT_TRUE(has(job.err(), "batch_size is 3 on rank 0")) << job.err();
  EXPECT_TRUE(has(job.err(), "and 4 on rank 1")) << job.err();
}

TEST_F(BenchWorkers, RunUnderAPlainMpirun) {
  const TemporaryFolder folder;
  const std::string out = (folder.path() / "out").string();
  const auto record = folder.path() / "record.json";
  const std::string command =
      "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 timeout 60 mpirun --oversubscribe --bind-to none -np "
      "2 " TRIREME_BINARY " bench --model mnist --batch-size 2 --num-batches 5 --autotune off --record " +
      record.string() + " >" + out + " 2>&1";
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::ifstream stream(out);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_TRUE(has(text, "4 global = 2 per worker x 2 workers")) << text;
  const auto cluster = read_record(record).at("cluster");
  if (std::thread::hardware_concurrency() >= 2) {
    EXPECT_NE(cluster.at(0).at("cores"), cluster.at(1).at("cores")) << "each has processors of its own";
  }
  EXPECT_EQ(text.find("total images/sec"), text.rfind("total images/sec")) << "rank 0 alone speaks:\n" << text;
}

}  // namespace
}  // namespace trireme::testkit
