#include "trireme/lab/job_figures.hpp"

#include <gtest/gtest.h>

namespace trireme::lab {
namespace {

constexpr double kLink = 1.2e8;

// Four workers, a host each, that have reduced 20 MB in 0.25 s.
BenchmarkSetup setup_of_four() {
  BenchmarkSetup setup;
  setup.config.batch_size = 1;
  setup.config.distribution.workers = 4;
  setup.config.distribution.update = VariableUpdate::all_reduce;
  setup.all_reduce = "ring";
  setup.bucket_bytes = {15'000'000, 5'000'000};
  for (int rank = 0; rank < 4; ++rank)
    setup.members.push_back({.world_rank = rank, .name = "", .host = "", .node = rank});
  setup.network =
      TransportFits{.same_host = std::nullopt, .other_host = KeptFit{.fit = {.cost = {1e-5, kLink}}, .when = {}}};
  return setup;
}

BenchmarkResult result_of_four() {
  BenchmarkResult result;
  for (int rank = 0; rank < 4; ++rank) {
    RankReport report;
    report.rank = rank;
    report.step_seconds = {{1.0}};
    report.losses = {{2.0}};
    report.step = 1;
    report.bucket_seconds = {0.2 + 0.1 * rank, 0.05};
    result.ranks.push_back(report);
  }
  return result;
}

TEST(GradientTraffic, IsThatOfTheBusBesideThatOfTheLink) {
  const auto traffic = job_figures(setup_of_four(), result_of_four()).traffic;
  ASSERT_TRUE(traffic);
  EXPECT_EQ(traffic->bytes, 20e6);
  EXPECT_NEAR(traffic->bus_bytes_per_second, 2.0 * 3 / 4 * 20e6 / 0.25, 1);
  EXPECT_EQ(traffic->link_bytes_per_second, kLink);
}

TEST(GradientTraffic, HalfTheBytesTravelInHalfPrecision) {
  BenchmarkSetup setup = setup_of_four();
  setup.wire = comm::Wire::bf16;
  EXPECT_EQ(job_figures(setup, result_of_four()).traffic->bytes, 10e6);
}

TEST(GradientTraffic, KnowsNoLinkInsideAHostAndNoneThatWasNotMeasured) {
  BenchmarkSetup setup = setup_of_four();
  for (comm::Member& member : setup.members) member.node = 0;
  EXPECT_FALSE(job_figures(setup, result_of_four()).traffic->link_bytes_per_second);
  setup = setup_of_four();
  setup.network.reset();
  EXPECT_FALSE(job_figures(setup, result_of_four()).traffic->link_bytes_per_second);
}

TEST(GradientTraffic, IsOfAllReduceAlone) {
  BenchmarkSetup setup = setup_of_four();
  setup.all_reduce.clear();  // as with parameter servers
  EXPECT_FALSE(job_figures(setup, result_of_four()).traffic);
}

}  // namespace
}  // namespace trireme::lab
