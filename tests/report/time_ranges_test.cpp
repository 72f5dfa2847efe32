#include <gtest/gtest.h>

#include <random>

#include "trireme/report/trace_steps.hpp"

namespace trireme::report {
namespace {

using Parts = std::vector<TimeRange>;

TEST(TimeRanges, CountWhatOverlapsOnce) {
  const TimeRanges set({{4, 5}, {0, 2}, {1, 3}, {3, 3.5}, {7, 7}, {9, 8}});
  EXPECT_EQ(set.parts(), (Parts{{0, 3.5}, {4, 5}}));
  EXPECT_DOUBLE_EQ(set.length(), 4.5);
  EXPECT_EQ(TimeRanges().length(), 0);
}

TEST(TimeRanges, UnionDifferenceAndWhatIsCommon) {
  const TimeRanges a({{0, 4}, {6, 10}, {12, 13}}), b({{1, 2}, {3, 7}, {9, 14}});
  EXPECT_EQ(a.united_with(b).parts(), (Parts{{0, 14}}));
  EXPECT_EQ(a.without(b).parts(), (Parts{{0, 1}, {2, 3}, {7, 9}}));
  EXPECT_EQ(b.without(a).parts(), (Parts{{4, 6}, {10, 12}, {13, 14}}));
  EXPECT_EQ(a.common_with(b).parts(), (Parts{{1, 2}, {3, 4}, {6, 7}, {9, 10}, {12, 13}}));
  EXPECT_EQ(a.without(TimeRanges()).parts(), a.parts());
  EXPECT_TRUE(TimeRanges().without(a).parts().empty());
}

// Against the same on a line of cells.
TEST(TimeRanges, AgreeWithCountingCells) {
  constexpr int kCells = 60;
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](std::vector<bool>& cells) {
      Parts parts;
      for (int i = 0; i < 6; ++i) {
        const int begin = static_cast<int>(random() % kCells), end = begin + static_cast<int>(random() % 9);
        parts.push_back({static_cast<double>(begin), static_cast<double>(end)});
        for (int at = begin; at < end; ++at) cells[at] = true;
      }
      return TimeRanges(parts);
    };
    std::vector<bool> in_a(2 * kCells), in_b(2 * kCells);
    const TimeRanges a = draw(in_a), b = draw(in_b);
    int both = 0, either = 0, only_a = 0;
    for (std::size_t i = 0; i < in_a.size(); ++i) {
      both += in_a[i] && in_b[i];
      either += in_a[i] || in_b[i];
      only_a += in_a[i] && !in_b[i];
    }
    EXPECT_EQ(a.common_with(b).length(), both);
    EXPECT_EQ(a.united_with(b).length(), either);
    EXPECT_EQ(a.without(b).length(), only_a);
  }
}

}  // namespace
}  // namespace trireme::report
