#include "trireme/lab/bench/task_reports.hpp"

#include <gtest/gtest.h>

namespace trireme::lab {
namespace {

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
    const record::Breakdown& part = summary.ranks[i];
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
