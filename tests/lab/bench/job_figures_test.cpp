#include "trireme/lab/bench/job_figures.hpp"

#include <gtest/gtest.h>

#include "cli/benchmark_output.hpp"

namespace trireme::lab {
namespace {

constexpr double kLink = 1.2e8;

// Four workers, a host each, that have reduced 20 MB in 0.25 s.
BenchmarkSetup setup_of_four() {
  BenchmarkSetup setup;
  setup.config.batch_size = 1;
  setup.config.distribution.workers = 4;
  setup.config.distribution.update = train::VariableUpdate::all_reduce;
  setup.all_reduce = "ring";
  setup.bucket_bytes = {15'000'000, 5'000'000};
  for (int rank = 0; rank < 4; ++rank)
    setup.members.push_back({.world_rank = rank, .name = "", .host = "", .node = rank});
  setup.network = comm::TransportFits{.same_host = std::nullopt,
                                      .other_host = comm::KeptFit{.fit = {.cost = {1e-5, kLink}}, .when = {}}};
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

// Four images per second.
BenchmarkResult result_with(const Baseline& baseline) {
  BenchmarkResult result = result_of_four();
  result.baseline = baseline;
  return result;
}

TEST(Baselines, EfficiencyIsSharesOfBoth) {
  const BenchmarkResult result = result_with({.alone = {1.25}, .independent = {4.5}});
  const JobFigures figures = job_figures(setup_of_four(), result);
  EXPECT_DOUBLE_EQ(figures.scaling_efficiency.value(), 0.8);
  EXPECT_DOUBLE_EQ(figures.share_of_independent.value(), 4 / 4.5);
  EXPECT_EQ(cli::baseline_text(setup_of_four(), result, figures),
            "efficiency:  80.0 % of 4 x one worker alone (1.25 images/sec); 88.9 % of 4 workers that exchange nothing "
            "(4.50 images/sec)\n");
}

// Workers that exchange nothing cannot be 4.74 times as fast as as many that each have the machine for themselves.
TEST(Baselines, ThatContradictEachOtherGiveNoEfficiency) {
  const BenchmarkResult result = result_with({.alone = {1.12}, .independent = {4 * 1.12 * 4.74}});
  const JobFigures figures = job_figures(setup_of_four(), result);
  EXPECT_TRUE(figures.baselines_contradict());
  EXPECT_FALSE(figures.scaling_efficiency);
  EXPECT_FALSE(figures.share_of_independent);
  EXPECT_EQ(cli::baseline_text(setup_of_four(), result, figures),
            "efficiency:  unknown, because the measurements contradict each other by a factor of 4.7: 4 workers that "
            "train together reach 4.00 images/sec, 4 that exchange nothing 21.24, 4 x one worker alone 4.48; each "
            "should be at least the one before it. Something else used the machine: measure again when it is idle\n");
}

TEST(Baselines, ExchangingCannotBeFasterThanExchangingNothing) {
  EXPECT_TRUE(job_figures(setup_of_four(), result_with({.alone = {1.2}, .independent = {2}})).baselines_contradict());
  EXPECT_FALSE(job_figures(setup_of_four(), result_with({.alone = {1}, .independent = {3.8}})).baselines_contradict());
}

TEST(Baselines, WorkersThatDisturbEachOtherAreSaidTo) {
  const BenchmarkResult result = result_with({.alone = {2}, .independent = {4.4}});
  const std::string text = cli::baseline_text(setup_of_four(), result, job_figures(setup_of_four(), result));
  EXPECT_NE(text.find("reach 55.0 % of 4 x one worker alone: they share cores"), std::string::npos) << text;
}

}  // namespace
}  // namespace trireme::lab
