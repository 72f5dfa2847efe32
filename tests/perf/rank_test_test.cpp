// Expected p values are counts over all orders of the samples, made by a program that lists them.
#include "trireme/perf/rank_test.hpp"

#include <gtest/gtest.h>

#include <random>

namespace trireme::perf {
namespace {

using Samples = std::vector<double>;

TEST(RankTest, CountsOrdersWithoutTies) {
  const RankTest test = rank_test(Samples{1, 2, 3, 4, 7}, Samples{5, 6, 8, 9, 10});
  EXPECT_DOUBLE_EQ(test.u, 2);
  EXPECT_NEAR(test.p, 8.0 / 252, 1e-12);
  EXPECT_TRUE(test.exact);
}

TEST(RankTest, AgreesWithTheTextbook) {  // Hollander and Wolfe: permeability of membranes, W = 35
  const Samples at_term{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Samples early{1.15, 0.88, 0.90, 0.74, 1.21};
  const RankTest test = rank_test(at_term, early);
  EXPECT_DOUBLE_EQ(test.u, 35);
  EXPECT_NEAR(test.p, 0.2544122544, 1e-9);
}

TEST(RankTest, CountsOrdersWithTies) {
  EXPECT_NEAR(rank_test(Samples{1, 1, 2, 3}, Samples{2, 3, 3, 4}).p, 0.2, 1e-12);
  EXPECT_NEAR(rank_test(Samples{1, 2, 2}, Samples{2, 3, 4, 5, 5}).p, 5.0 / 56, 1e-12);
  EXPECT_DOUBLE_EQ(rank_test(Samples{1, 1, 2, 3}, Samples{2, 3, 3, 4}).u, 2.5);
}

TEST(RankTest, TiesInsideTheSetsMakeNoEvidence) {  // the normal approximation would say 0.047
  EXPECT_NEAR(rank_test(Samples{1, 1, 1}, Samples{2, 2, 2}).p, 0.1, 1e-12);
}

TEST(RankTest, ThreeRunsEachCanShowNothing) {
  const RankTest test = rank_test(Samples{1, 2, 3}, Samples{100, 200, 300});
  EXPECT_NEAR(test.p, 0.1, 1e-12);
  EXPECT_NEAR(test.smallest_p, 0.1, 1e-12);
  EXPECT_NEAR(rank_test(Samples{1, 2, 3, 4}, Samples{5, 6, 7, 8}).smallest_p, 2.0 / 70, 1e-12);
}

TEST(RankTest, SidesAreAlike) {
  const Samples a{3, 1, 4, 1, 5, 9, 2, 6}, b{5, 3, 5, 8, 9, 7};
  EXPECT_DOUBLE_EQ(rank_test(a, b).p, rank_test(b, a).p);
  EXPECT_DOUBLE_EQ(rank_test(a, b).u + rank_test(b, a).u, 48);
}

TEST(RankTest, EqualSamplesAndEmptySetsShowNothing) {
  EXPECT_DOUBLE_EQ(rank_test(Samples{5, 5, 5}, Samples{5, 5, 5}).p, 1);
  EXPECT_DOUBLE_EQ(rank_test(Samples{}, Samples{5, 5, 5}).p, 1);
  EXPECT_DOUBLE_EQ(rank_test(Samples(50, 1.0), Samples(50, 1.0)).p, 1);
}

TEST(RankTest, ManySamplesAreApproximatedWithTies) {
  Samples a, b;
  for (int i = 0; i < 40; ++i) {
    a.push_back(i % 7);
    b.push_back(i % 7 + i % 2);
  }
  const RankTest test = rank_test(a, b);
  EXPECT_FALSE(test.exact);
  EXPECT_DOUBLE_EQ(test.u, 691.5);
  EXPECT_NEAR(test.p, 0.29398143354797546, 1e-12);
}

TEST(RankTest, ApproximationMeetsTheExactCount) {  // at the size where one takes over from the other
  Samples a, b, more;
  for (int i = 0; i < 30; ++i) {
    a.push_back(i);
    b.push_back(i + 6.5);
  }
  more = b;
  more.push_back(21.25);
  EXPECT_TRUE(rank_test(a, b).exact);
  EXPECT_FALSE(rank_test(a, more).exact);
  EXPECT_NEAR(rank_test(a, b).p, rank_test(a, more).p, 0.004);
}

TEST(RankTest, DirectionIsThatOfTheRanks) {
  EXPECT_EQ(rank_test(Samples{1, 2, 300}, Samples{3, 4, 5}).direction, -1);  // whatever the mean
  EXPECT_EQ(rank_test(Samples{3, 4, 5}, Samples{1, 2, 300}).direction, 1);
  EXPECT_EQ(rank_test(Samples{1, 4}, Samples{2, 3}).direction, 0);
}

TEST(RankTest, LargestUIsThatOfTheTables) {
  EXPECT_EQ(largest_u(5, 5, 0.025), 2U);
  EXPECT_EQ(largest_u(10, 10, 0.025), 23U);
  EXPECT_EQ(largest_u(4, 4, 0.025), 0U);
  EXPECT_EQ(largest_u(3, 3, 0.025), std::nullopt);
  EXPECT_EQ(largest_u(20, 20, 0.025), 127U);
  EXPECT_NEAR(static_cast<double>(*largest_u(30, 31, 0.025)), 465 - 1.96 * 69.3 - 0.5, 2);  // approximated
}

TEST(SignTest, CountsHeads) {
  EXPECT_NEAR(sign_test(Samples{1, 2, 3, 4, 5}), 1.0 / 32, 1e-12);
  EXPECT_NEAR(sign_test(Samples{1, 2, 3, -4}), 5.0 / 16, 1e-12);
  EXPECT_NEAR(sign_test(Samples{1, 2, 0, 0}), 0.25, 1e-12);
  EXPECT_NEAR(sign_test(Samples{-1, -2}), 1, 1e-12);
  EXPECT_NEAR(sign_test(Samples{}), 1, 1e-12);
}

TEST(OverallRankTest, AddsUpWhatEveryPairShows) {
  const std::vector<SamplePair> pairs{
      {{1, 2, 3}, {4, 5, 6}}, {{10, 20, 30, 40}, {25, 35, 45, 50}}, {{7, 8}, {9, 8, 10}}};
  EXPECT_NEAR(overall_rank_test(pairs).p, 86.0 / 14000, 1e-12);
  EXPECT_TRUE(overall_rank_test(pairs).exact);
}

TEST(OverallRankTest, FewRunsOfFewPairsShowNothing) {  // the normal approximation would say 0.03
  const std::vector<SamplePair> pairs{{{1, 2}, {4, 5}}, {{1, 2}, {4, 5}}};
  EXPECT_NEAR(overall_rank_test(pairs).p, 2.0 / 36, 1e-12);
}

TEST(OverallRankTest, ManyRunsAreApproximated) {
  std::vector<double> low, high;
  for (int i = 0; i < 40; ++i) {
    low.push_back(i);
    high.push_back(i + 8);
  }
  const std::vector<SamplePair> pairs{{low, high}};
  EXPECT_FALSE(overall_rank_test(pairs).exact);
  EXPECT_NEAR(overall_rank_test(pairs).p, rank_test(low, high).p, 1e-12);
}

TEST(OverallRankTest, LevelsOfPairsDoNotMatter) {  // a fast configuration beside a slow one
  const std::vector<SamplePair> pairs{{{1, 2, 3}, {1, 2, 3}}, {{1000, 2000}, {1000, 2000}}};
  EXPECT_DOUBLE_EQ(overall_rank_test(pairs).p, 1);
  EXPECT_DOUBLE_EQ(overall_rank_test({}).p, 1);
}

TEST(OverallRankTest, KnowsItsDirectionAndWhatItCouldShow) {
  const std::vector<SamplePair> pairs{{{1, 2, 3}, {4, 5, 6}}, {{1, 2, 3}, {4, 5, 6}}, {{900, 901, 902}, {4, 5, 6}}};
  EXPECT_EQ(overall_rank_test(pairs).direction, -1);
  EXPECT_NEAR(overall_rank_test(pairs).smallest_p, 2.0 / 8000, 1e-12);
  EXPECT_NEAR(overall_rank_test(std::span(pairs).first(1)).smallest_p, 0.1, 1e-12);
}

// Sets of noise; the first set of each group is larger by `lead`.
std::vector<SampleSets> noise(std::mt19937_64& random, std::size_t groups, std::size_t sets, double lead) {
  std::vector<SampleSets> result(groups, SampleSets(sets, Samples(5)));
  for (SampleSets& group : result) {
    for (Samples& set : group) {
      for (double& sample : set) sample = static_cast<double>(random() % 10000) + (&set == group.data() ? lead : 0);
    }
  }
  return result;
}

double share_shown(std::size_t groups, std::size_t sets, double lead, int trials) {
  std::mt19937_64 random(5);
  int shown = 0;
  for (int trial = 0; trial < trials; ++trial) shown += group_rank_test(noise(random, groups, sets, lead)).p < 0.05;
  return static_cast<double>(shown) / trials;
}

TEST(GroupRankTest, NoiseIsShownNoMoreOftenThanItMay) {  // the best of eight against the worst would be in one of five
  EXPECT_LE(share_shown(1, 8, 0, 200), 0.08);
  EXPECT_LE(share_shown(3, 4, 0, 200), 0.08);
}

TEST(GroupRankTest, FiveRunsOfEightShowWhatPairsCorrectedForTheirNumberCannot) {
  EXPECT_GE(share_shown(1, 8, 10000, 50), 0.95);
  EXPECT_GE(share_shown(4, 3, 5000, 50), 0.9);  // groups add up
}

TEST(GroupRankTest, TwoSetsAreTheRankSumTest) {
  const Samples a{1, 2, 3, 4, 7}, b{5, 6, 8, 9, 10};
  const std::vector<SampleSets> counted{{a, b}}, tried{{a, b}, {}};  // a group without samples says nothing
  EXPECT_DOUBLE_EQ(group_rank_test(counted).p, rank_test(a, b).p);
  EXPECT_NEAR(group_rank_test(tried).p, rank_test(a, b).p, 0.01);
  EXPECT_NEAR(group_rank_test(tried).smallest_p, rank_test(a, b).smallest_p, 1e-12);
}

TEST(GroupRankTest, KnowsWhatSoFewRunsCanShow) {
  const std::vector<SampleSets> single{{{1}, {2}, {3}}}, pairs{{{1, 2}, {3, 4}, {5, 6}}}, alike{{{5, 5, 5}, {5, 5, 5}}};
  EXPECT_DOUBLE_EQ(group_rank_test(single).smallest_p, 1);
  EXPECT_NEAR(group_rank_test(pairs).smallest_p, 6.0 / 90, 1e-12);
  EXPECT_GT(group_rank_test(pairs).p, 0.05);
  EXPECT_DOUBLE_EQ(group_rank_test(alike).p, 1);
  EXPECT_DOUBLE_EQ(group_rank_test({}).p, 1);
}

}  // namespace
}  // namespace trireme::perf
