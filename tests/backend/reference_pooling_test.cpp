#include <gtest/gtest.h>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using op::PoolKind;
using testkit::f32;
using testkit::run_kernel;

HostTensor nine() { return f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}); }
// Two windows each way, the second half outside.
op::Window padded_after() { return {.kernel = {2, 2}, .stride = {2, 2}, .pad_after = {1, 1}}; }
op::Window padded_before() { return {.kernel = {2, 2}, .stride = {2, 2}, .pad_before = {1, 1}}; }

std::vector<float> pool(PoolKind kind, const op::Window& window, const HostTensor& src) {
  return run_kernel(op::Pool{.kind = kind, .window = window}, {src});
}

TEST(ReferencePool, Max) {
  EXPECT_EQ(pool(PoolKind::max, padded_after(), nine()), (std::vector<float>{5, 6, 8, 9}));
  EXPECT_EQ(pool(PoolKind::max, padded_before(), nine()), (std::vector<float>{1, 3, 7, 9}));
}

TEST(ReferencePool, MaxDoesNotSeeThePadding) {
  EXPECT_EQ(pool(PoolKind::max, padded_after(), f32({1, 1, 1, 1}, {-5})), (std::vector<float>{-5}));
}

TEST(ReferencePool, AverageInsideDividesByTheCellsInside) {
  EXPECT_EQ(pool(PoolKind::average_inside, padded_after(), nine()), (std::vector<float>{3, 4.5, 7.5, 9}));
  EXPECT_EQ(pool(PoolKind::average_inside, padded_before(), nine()), (std::vector<float>{1, 2.5, 5.5, 7}));
}

TEST(ReferencePool, AverageIncludePaddingDividesByTheKernel) {
  EXPECT_EQ(pool(PoolKind::average_include_padding, padded_after(), nine()), (std::vector<float>{3, 2.25, 3.75, 2.25}));
}

TEST(ReferencePool, EveryChannelByItself) {
  const op::Window window{.kernel = {1, 2}};
  EXPECT_EQ(pool(PoolKind::max, window, f32({2, 2, 1, 2}, {1, 2, 3, 4, 6, 5, 8, 7})), (std::vector<float>{2, 4, 6, 8}));
}

TEST(ReferencePoolBackward, OfEqualMaximaTheFirstInRowOrderGetsIt) {
  const op::PoolBackward operation{.kind = PoolKind::max, .window = {.kernel = {2, 2}}, .src_shape = {1, 1, 2, 2}};
  const HostTensor diff_dst = f32({1, 1, 1, 1}, {7}), dst = f32({1, 1, 1, 1}, {1});
  EXPECT_EQ(run_kernel(operation, {diff_dst, f32({1, 1, 2, 2}, {1, 1, 1, 1}), dst}), (std::vector<float>{7, 0, 0, 0}));
  EXPECT_EQ(run_kernel(operation, {diff_dst, f32({1, 1, 2, 2}, {0, 1, 1, 0}), dst}), (std::vector<float>{0, 7, 0, 0}));
}

TEST(ReferencePoolBackward, OverlappingWindowsAddUp) {
  const op::PoolBackward operation{.kind = PoolKind::max, .window = {.kernel = {1, 2}}, .src_shape = {1, 1, 1, 3}};
  const auto diff_src =
      run_kernel(operation, {f32({1, 1, 1, 2}, {10, 5}), f32({1, 1, 1, 3}, {1, 3, 2}), f32({1, 1, 1, 2}, {3, 3})});
  EXPECT_EQ(diff_src, (std::vector<float>{0, 15, 0}));
}

TEST(ReferencePoolBackward, NothingFlowsThroughAReluThatIsZero) {
  const op::PoolBackward operation{
      .window = {.kernel = {1, 2}, .stride = {1, 2}}, .src_shape = {1, 1, 1, 4}, .activation = op::Activation::relu};
  const auto diff_src =
      run_kernel(operation, {f32({1, 1, 1, 2}, {10, 5}), f32({1, 1, 1, 4}, {0, 0, 0, 2}), f32({1, 1, 1, 2}, {0, 2})});
  EXPECT_EQ(diff_src, (std::vector<float>{0, 0, 0, 5}));
}

TEST(ReferencePoolBackward, AveragesSpreadByTheirDivisor) {
  const HostTensor diff_dst = f32({1, 1, 2, 2}, {4, 8, 12, 16});
  op::PoolBackward operation{.kind = PoolKind::average_inside, .window = padded_after(), .src_shape = {1, 1, 3, 3}};
  EXPECT_EQ(run_kernel(operation, {diff_dst}), (std::vector<float>{1, 1, 4, 1, 1, 4, 6, 6, 16}));
  operation.kind = PoolKind::average_include_padding;
  EXPECT_EQ(run_kernel(operation, {diff_dst}), (std::vector<float>{1, 1, 2, 1, 1, 2, 3, 3, 4}));
}

}  // namespace
}  // namespace trireme
