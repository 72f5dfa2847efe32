// Windows: output extents, SAME padding and the text of a window.
#include <gtest/gtest.h>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/ops/common.hpp"

namespace trireme::op {
namespace {

TEST(Window, SameOf7x7Stride2On224Pads2BeforeAnd3After) {
  const Window window = same_padding({.kernel = {7, 7}, .stride = {2, 2}}, 224, 224);
  EXPECT_EQ(window.pad_before, (Pair{2, 2}));
  EXPECT_EQ(window.pad_after, (Pair{3, 3}));
  EXPECT_EQ(window_outputs(window, {224, 224}), (Pair{112, 112}));
}

TEST(Window, SameOf3x3Stride2On112Pads0BeforeAnd1After) {
  const Window window = same_padding({.kernel = {3, 3}, .stride = {2, 2}}, 112, 112);
  EXPECT_EQ(window.pad_before, (Pair{0, 0}));
  EXPECT_EQ(window.pad_after, (Pair{1, 1}));
  EXPECT_EQ(window_outputs(window, {112, 112}), (Pair{56, 56}));
}

TEST(Window, SameGivesTheInputDividedByTheStrideRoundedUp) {
  for (std::int64_t input = 1; input <= 20; ++input) {
    for (std::int64_t kernel = 1; kernel <= 7; ++kernel) {
      for (std::int64_t stride = 1; stride <= 4; ++stride) {
        const Window window = same_padding({.kernel = {kernel, 1}, .stride = {stride, 1}}, input, 5);
        EXPECT_EQ(window_outputs(window, {input, 5}), (Pair{(input + stride - 1) / stride, 5})) << to_string(window);
        EXPECT_GE(window.pad_after[0], window.pad_before[0]);
        EXPECT_LE(window.pad_after[0], window.pad_before[0] + 1);
      }
    }
  }
}

TEST(Window, SameReplacesPaddingAndCountsDilation) {
  const Window window = same_padding({.kernel = {3, 3}, .dilation = {2, 1}, .pad_before = {9, 9}}, 10, 10);
  EXPECT_EQ(window.pad_before, (Pair{2, 1}));
  EXPECT_EQ(window.pad_after, (Pair{2, 1}));
}

TEST(Window, ResnetPaddingOf7x7Stride2) {
  const Window window{.kernel = {7, 7}, .stride = {2, 2}, .pad_before = {3, 3}, .pad_after = {3, 3}};
  EXPECT_EQ(window_outputs(window, {224, 224}), (Pair{112, 112}));
}

TEST(Window, AKernelTooLargeByLessThanAStrideLeavesNothing) {
  const Window window{.kernel = {3, 3}, .stride = {2, 2}};
  EXPECT_EQ(window_output(window, 0, 2), 0);
  EXPECT_EQ(window_output(window, 0, 3), 1);
  EXPECT_EQ(window_output({.kernel = {7, 1}, .stride = {2, 1}}, 0, 2), -2);
}

TEST(Window, EmptyOutputSaysTheAxisAndTheExtent) {
  testkit::expect_bad_input(
      [] {
        window_outputs({.kernel = {1, 7}, .stride = {2, 2}}, {9, 4});
      },
      {"output would have width -1", "kernel spans 7", "width 4", "smaller kernel"});
}

TEST(Window, NumbersOutOfRange) {
  testkit::expect_bad_input([] { window_outputs({.kernel = {0, 1}}, {4, 4}); }, {"kernel is 0x1", "1 or more"});
  testkit::expect_bad_input([] { window_outputs({.stride = {1, 0}}, {4, 4}); }, {"stride is 1x0", "1 or more"});
  testkit::expect_bad_input([] { window_outputs({.dilation = {0, 0}}, {4, 4}); }, {"dilation is 0x0"});
  testkit::expect_bad_input([] { window_outputs({.pad_before = {-1, 0}}, {4, 4}); }, {"padding before is -1x0"});
  testkit::expect_bad_input([] { window_outputs({.pad_after = {0, -2}}, {4, 4}); }, {"padding after is 0x-2"});
  testkit::expect_bad_input([] { same_padding({.stride = {0, 0}}, 4, 4); }, {"stride is 0x0"});
}

TEST(Window, Text) {
  EXPECT_EQ(to_string(Window{}), "1x1");
  EXPECT_EQ(to_string(same_padding({.kernel = {3, 3}, .stride = {2, 2}}, 112, 111)), "3x3/2 pad 0,1 x 1,1");
  EXPECT_EQ(to_string(Window{.kernel = {1, 7}, .stride = {1, 2}, .dilation = {3, 3}}), "1x7/1,2 dilation 3");
}

}  // namespace
}  // namespace trireme::op
