#include "trireme/perf/comparison.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace trireme::perf {
namespace {

using Samples = std::vector<double>;

TEST(Comparison, ClearDifferenceIsClaimed) {
  const Comparison comparison = compare(Samples{112, 113, 111, 112, 114}, Samples{100, 101, 99, 100, 102});
  EXPECT_EQ(comparison.verdict, Verdict::larger);
  EXPECT_DOUBLE_EQ(comparison.ratio, 1.12);
  EXPECT_NEAR(comparison.p, 2.0 / 252, 1e-12);
  EXPECT_LT(comparison.interval.low, 1.12);
  EXPECT_GT(comparison.interval.high, 1.12);
  EXPECT_EQ(compare(Samples{100, 101, 99, 100, 102}, Samples{112, 113, 111, 112, 114}).verdict, Verdict::smaller);
}

TEST(Comparison, OverlapIsNoDifference) {
  const Comparison comparison = compare(Samples{100, 120, 101, 118, 104}, Samples{99, 119, 102, 117, 103});
  EXPECT_EQ(comparison.verdict, Verdict::no_difference_shown);
  EXPECT_FALSE(comparison.is_supported());
}

TEST(Comparison, ThreeRunsAreTooFewHoweverFarApart) {
  EXPECT_EQ(compare(Samples{1, 2, 3}, Samples{1000, 2000, 3000}).verdict, Verdict::too_few_runs);
  EXPECT_EQ(compare(Samples{1}, Samples{1000}).verdict, Verdict::too_few_runs);
  EXPECT_EQ(compare(Samples{}, Samples{1000}).verdict, Verdict::too_few_runs);
}

TEST(Comparison, EqualMediansAreNoDifference) {  // though the ranks differ
  const Comparison comparison = compare(Samples{1, 1, 1, 1, 5, 5, 5, 5, 5}, Samples{5, 5, 5, 5, 5, 9, 9, 9, 9});
  EXPECT_LT(comparison.p, kSignificance);
  EXPECT_EQ(comparison.verdict, Verdict::no_difference_shown);
}

TEST(Comparison, RanksAndMediansMustAgree) {
  Samples first(17, 10.0), second(17, 9.0);  // by medians the first is larger, by ranks smaller
  std::fill_n(first.begin(), 8, 1.0);
  std::fill_n(second.begin(), 8, 11.0);
  Comparison comparison = compare(first, second);
  EXPECT_GT(comparison.ratio, 1);
  EXPECT_EQ(comparison.direction, -1);
  EXPECT_LT(comparison.p, kSignificance);
  EXPECT_EQ(comparison.verdict, Verdict::no_difference_shown);
  EXPECT_NE(p_text(comparison).find("but medians and ranks disagree"), std::string::npos);
  comparison.direction = 1;
  EXPECT_EQ(verdict_of(comparison), Verdict::larger);
}

TEST(Holm, AgreesWithAWorkedExample) {
  const std::vector<double> corrected = holm(std::vector<double>{0.01, 0.04, 0.03, 0.005});
  EXPECT_NEAR(corrected[0], 0.03, 1e-12);
  EXPECT_NEAR(corrected[1], 0.06, 1e-12);
  EXPECT_NEAR(corrected[2], 0.06, 1e-12);
  EXPECT_NEAR(corrected[3], 0.02, 1e-12);
  EXPECT_TRUE(holm({}).empty());
  EXPECT_NEAR(holm(std::vector<double>{0.7, 0.8})[0], 1, 1e-12);
}

TEST(Holm, TakesBackWhatOneOfManyComparisonsClaims) {
  const Samples slow{100, 101, 99, 100, 102}, fast{112, 113, 111, 112, 114};
  std::vector<Comparison> few(6, compare(fast, slow)), many(7, compare(fast, slow));
  correct_together(few);
  correct_together(many);
  EXPECT_EQ(few[0].verdict, Verdict::larger);         // 6 x 0.0079 < 0.05
  EXPECT_EQ(many[0].verdict, Verdict::too_few_runs);  // 7 x 0.0079 > 0.05: not with five runs
}

TEST(Comparison, RunsThatAreNeeded) {
  EXPECT_EQ(runs_needed(1), 4);  // 2 / C(8, 4) = 0.029
  EXPECT_EQ(runs_needed(6), 5);
  EXPECT_EQ(runs_needed(7), 6);
  EXPECT_EQ(runs_needed(0), 4);
}

TEST(Comparison, TextOfP) {
  EXPECT_EQ(p_text(0.0031), "p = 0.003");
  EXPECT_EQ(p_text(0.0004), "p < 0.001");
  EXPECT_EQ(p_text(0.049), "p = 0.049");
  EXPECT_EQ(p_text(0.31), "p = 0.31");
}

}  // namespace
}  // namespace trireme::perf
