#include "trireme/lab/distribution.hpp"

#include <gtest/gtest.h>

#include "trireme/base/error.hpp"
#include "trireme/lab/benchmark_config.hpp"
#include "trireme/lab/rank_report.hpp"

namespace trireme::lab {
namespace {

DistributionConfig resolved(int workers, const std::function<void(DistributionOptions&)>& change = {},
                            bool forward_only = false) {
  DistributionOptions options;
  if (change) change(options);
  return resolve(options, workers, forward_only);
}

void expect_refused(int workers, const std::function<void(DistributionOptions&)>& change, const std::string& part) {
  try {
    resolved(workers, change);
    FAIL() << "not refused: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(Distribution, SeveralWorkersTrainTogetherUnlessToldOtherwise) {
  EXPECT_TRUE(resolved(2).is_synchronous());
  EXPECT_FALSE(resolved(1).is_synchronous());
  EXPECT_FALSE(resolved(2, {}, true).is_synchronous()) << "forward only";
  EXPECT_FALSE(resolved(2, [](auto& o) { o.variable_update = "independent"; }).is_synchronous());
}

TEST(Distribution, BadOptionsAreRefusedWithTheLegalOnes) {
  expect_refused(
      2, [](auto& o) { o.variable_update = "horovod"; }, "auto, all_reduce, independent");
  expect_refused(
      2, [](auto& o) { o.all_reduce = "nccl"; }, "halving_doubling");
  expect_refused(
      2, [](auto& o) { o.bucket_mb = "-3"; }, "--bucket-mb -3");
  expect_refused(
      2, [](auto& o) { o.bucket_mb = "4x"; }, "--bucket-mb 4x");
  expect_refused(
      2, [](auto& o) { o.overlap = "yes"; }, "on or off");
  expect_refused(
      2, [](auto& o) { o.gradient_precision = "int8"; }, "bf16");
  expect_refused(
      2, [](auto& o) { o.comm_timeout = 0; }, "--comm-timeout");
  expect_refused(
      2, [](auto& o) { o.check_replicas = -1; }, "--check-replicas");
  expect_refused(
      1, [](auto& o) { o.baseline = true; }, "one worker");
  expect_refused(
      2,
      [](auto& o) {
        o.sync_batch_norm = true;
        o.variable_update = "independent";
      },
      "--sync-batch-norm");
}

TEST(Distribution, WorkersDecideWhatElseIsPossible) {
  BenchmarkOptions options;
  options.batch_split = "2";
  EXPECT_THROW(resolve(options, 2), Error);
  options.batch_split = "auto";
  EXPECT_EQ(resolve(options, 2).batch_split, 1);
  EXPECT_EQ(resolve(options, 1).batch_split, 0);
  options.num_inter_threads = 2;
  EXPECT_THROW(resolve(options, 2), Error);
  options.num_inter_threads = 0;
  options.deterministic = true;
  EXPECT_EQ(resolve(options, 2).autotune, Autotune::off);
  options.distribution.all_reduce = "library";
  EXPECT_THROW(resolve(options, 2), Error);
}

TEST(Distribution, AnEpochIsThatOfAllWorkers) {
  BenchmarkOptions options;
  options.batch_size = 8;
  const auto alone = resolve(options, 1).schedule.steps_per_epoch;
  EXPECT_EQ(resolve(options, 4).schedule.steps_per_epoch, alone / 4);
  options.distribution.variable_update = "independent";
  EXPECT_EQ(resolve(options, 4).schedule.steps_per_epoch, alone);
}

TEST(Distribution, BucketsFollowTheSizeOfTheNetwork) {
  const DistributionConfig automatic = resolved(2);
  EXPECT_EQ(bucket_bytes_for(automatic, 102'000'000), 102'000'000 / 16);
  EXPECT_EQ(bucket_bytes_for(automatic, 1'000'000), 1'000'000) << "not too small";
  EXPECT_EQ(bucket_bytes_for(automatic, 532'000'000), 25'000'000) << "not too large";
  EXPECT_EQ(bucket_bytes_for(resolved(2, [](auto& o) { o.bucket_mb = "2.5"; }), 532'000'000), 2'500'000);
}

RankReport rank(double step, double wait, double update, std::vector<double> buckets) {
  RankReport report;
  report.step = step;
  report.wait = wait;
  report.update = update;
  report.bucket_seconds = std::move(buckets);
  return report;
}

TEST(WorkerSummary, WaitingForASlowRankIsIdlenessAndTheRestIsCommunication) {
  // Rank 1 computes 0.5 longer than rank 0, so rank 0 waits 0.5 for it; both wait 0.1 for the last bucket.
  const WorkerSummary summary = summarize({rank(2.2, 0.6, 0.1, {0.55, 0.3}), rank(2.2, 0.1, 0.1, {0.2, 0.1})});
  EXPECT_DOUBLE_EQ(*summary.ranks[0].compute, 1.5);
  EXPECT_DOUBLE_EQ(*summary.ranks[1].compute, 2.0);
  EXPECT_NEAR(*summary.ranks[0].idle, 0.5, 1e-12);
  EXPECT_NEAR(*summary.ranks[0].exposed_communication, 0.1, 1e-12);
  EXPECT_NEAR(*summary.ranks[1].idle, 0.0, 1e-12);
  EXPECT_NEAR(*summary.ranks[1].exposed_communication, 0.1, 1e-12);
  EXPECT_NEAR(summary.communication, 0.3, 1e-12) << "as on the rank that came last";
  EXPECT_NEAR(*summary.overlap, 2.0 / 3, 1e-12);
  EXPECT_EQ(summary.slowest, 1);
  EXPECT_GT(summary.straggling[1], WorkerSummary::kSlow);
  for (std::size_t i = 0; i < 2; ++i) {
    const report::Breakdown& part = summary.ranks[i];
    EXPECT_NEAR(*part.compute + *part.idle + *part.exposed_communication + *part.optimizer, 2.2, 1e-12);
  }
}

TEST(WorkerSummary, AStepTakesAsLongAsOnTheSlowestRank) {
  RankReport a, b;
  a.step_seconds = {{1, 2, 3}, {4}};
  b.step_seconds = {{2, 1, 3}, {5}};
  EXPECT_EQ(slowest_steps({a, b}), (std::vector<std::vector<double>>{{2, 2, 3}, {5}}));
}

}  // namespace
}  // namespace trireme::lab
