#include "trireme/plan/layout.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace trireme {
namespace {

Layout blocked(int rank, std::int64_t block) {
  Layout layout = Layout::plain(rank);
  layout.blocks.push_back({1, block});
  return layout;
}

TEST(Layout, NamesFollowOneDnnNotation) {
  EXPECT_EQ(Layout::plain(4).name(), "abcd");
  EXPECT_EQ(Layout::channels_last(4).name(), "acdb");
  EXPECT_EQ(Layout::channels_last(2).name(), "ab");
  EXPECT_EQ(blocked(4, 16).name(), "aBcd16b");
  Layout weights = Layout::plain(4);
  weights.blocks = {{1, 16}, {0, 16}};
  EXPECT_EQ(weights.name(), "ABcd16b16a");
  EXPECT_EQ(Layout::plain(0).name(), "scalar");
}

TEST(Layout, BlockedAxesArePaddedToWholeBlocks) {
  EXPECT_EQ(blocked(4, 16).elements({2, 17, 3, 5}), 2 * 32 * 3 * 5);
  EXPECT_EQ(Layout::plain(4).elements({2, 17, 3, 5}), 2 * 17 * 3 * 5);
  EXPECT_EQ(Layout::plain(0).elements({}), 1);
}

TEST(Layout, OffsetsOfAnAxisSplitTwice) {
  // 8 channels as 4 x (2 inner): index c lies at (c / 2) blocks outside and c % 2 inside, with the rows between.
  const TensorDesc desc{DataType::f32, {1, 8, 3}, {{0, 1, 2}, {{1, 2}}}};
  const auto offsets = axis_offsets(desc);
  EXPECT_EQ(offsets[1], (std::vector<std::int64_t>{0, 1, 6, 7, 12, 13, 18, 19}));
  EXPECT_EQ(offsets[2], (std::vector<std::int64_t>{0, 2, 4}));
}

TEST(Layout, OffsetsOfAnAxisWithTwoBlocks) {
  // OIhw4i16o4i of oneDNN: the axis appears twice among the inner blocks.
  const TensorDesc desc{DataType::f32, {16, 16, 1, 1}, {{0, 1, 2, 3}, {{1, 4}, {0, 16}, {1, 4}}}};
  const auto offsets = axis_offsets(desc);
  EXPECT_EQ(offsets[1][0], 0);
  EXPECT_EQ(offsets[1][3], 3);
  EXPECT_EQ(offsets[1][4], 64);
  EXPECT_EQ(offsets[1][15], 3 * 64 + 3);
  EXPECT_EQ(offsets[0][1], 4);
}

class PackTest : public testing::TestWithParam<Layout> {};

TEST_P(PackTest, UnpackUndoesPackAndPaddingIsZero) {
  const TensorDesc desc{DataType::f32, {3, 19, 4, 5}, GetParam()};
  std::vector<float> plain(desc.shape.elements());
  std::iota(plain.begin(), plain.end(), 1.0f);
  std::vector<float> packed(desc.layout.elements(desc.shape), -1.0f);
  pack(desc, plain.data(), packed.data());
  const double sum = std::accumulate(packed.begin(), packed.end(), 0.0);
  EXPECT_EQ(sum, std::accumulate(plain.begin(), plain.end(), 0.0)) << "padding must be zero";
  std::vector<float> back(plain.size());
  unpack(desc, packed.data(), back.data());
  EXPECT_EQ(back, plain);
}

INSTANTIATE_TEST_SUITE_P(Layouts, PackTest,
                         testing::Values(Layout::plain(4), Layout::channels_last(4), blocked(4, 16), blocked(4, 8),
                                         Layout{{0, 1, 2, 3}, {{1, 16}, {0, 16}}}, Layout{{1, 2, 3, 0}, {{0, 16}}}),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace trireme
