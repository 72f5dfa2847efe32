#include <gtest/gtest.h>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using testkit::BoundKernel;
using testkit::f32;
using testkit::run_kernel;

// Weights of powers of ten show in the digits of a result which cell met which weight.
const std::vector<float> kDigits{1, 10, 100, 1000};

op::Window asymmetric() { return {.kernel = {2, 2}, .pad_before = {1, 0}, .pad_after = {0, 1}}; }

TEST(ReferenceConvolution, PadsEachSideByItself) {
  const auto dst = run_kernel(op::Convolution{.window = asymmetric()},
                              {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 1, 2, 2}, kDigits)});
  EXPECT_EQ(dst, (std::vector<float>{2100, 200, 4321, 402}));
}

TEST(ReferenceConvolution, StridesAndLeavesTheRest) {
  const op::Window window{.kernel = {1, 2}, .stride = {1, 2}};
  const auto dst =
      run_kernel(op::Convolution{.window = window}, {f32({1, 1, 1, 5}, {1, 2, 3, 4, 5}), f32({1, 1, 1, 2}, {1, 10})});
  EXPECT_EQ(dst, (std::vector<float>{21, 43}));
}

TEST(ReferenceConvolution, Dilates) {
  const op::Window window{.kernel = {2, 2}, .dilation = {2, 2}};
  const auto dst = run_kernel(op::Convolution{.window = window},
                              {f32({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), f32({1, 1, 2, 2}, kDigits)});
  EXPECT_EQ(dst, (std::vector<float>{9731}));
}

TEST(ReferenceConvolution, SumsOverChannelsForEverySample) {
  const auto dst = run_kernel(op::Convolution{}, {f32({2, 2, 1, 1}, {1, 2, 3, 4}), f32({2, 2, 1, 1}, kDigits)});
  EXPECT_EQ(dst, (std::vector<float>{21, 2100, 43, 4300}));
}

TEST(ReferenceConvolution, KeepsGroupsApart) {
  const auto dst =
      run_kernel(op::Convolution{.window = {}, .groups = 2}, {f32({1, 2, 1, 1}, {2, 3}), f32({4, 1, 1, 1}, kDigits)});
  EXPECT_EQ(dst, (std::vector<float>{2, 20, 300, 3000}));
}

TEST(ReferenceConvolution, FusesBiasAddAndRelu) {
  const HostTensor src = f32({1, 1, 1, 2}, {1, -2}), weights = f32({1, 1, 1, 1}, {2}), bias = f32({1}, {1});
  const HostTensor addend = f32({1, 1, 1, 2}, {-10, 4.5});
  EXPECT_EQ(run_kernel(op::Convolution{.window = {}, .bias = true}, {src, weights, bias}), (std::vector<float>{3, -3}));
  EXPECT_EQ(run_kernel(op::Convolution{.window = {}, .add = true}, {src, weights, addend}),
            (std::vector<float>{-8, 0.5}));
  EXPECT_EQ(run_kernel(op::Convolution{.window = {}, .bias = true, .add = true, .activation = op::Activation::relu},
                       {src, weights, bias, addend}),
            (std::vector<float>{0, 1.5}));
}

TEST(ReferenceConvolutionBackwardData, FollowsAsymmetricPadding) {
  const op::ConvolutionBackwardData operation{.window = asymmetric(), .src_shape = {1, 1, 2, 2}};
  const auto diff_src = run_kernel(operation, {f32({1, 1, 2, 2}, {1, 1, 1, 1}), f32({1, 1, 2, 2}, kDigits)});
  EXPECT_EQ(diff_src, (std::vector<float>{101, 1111, 100, 1100}));
}

TEST(ReferenceConvolutionBackwardData, GivesZeroToCellsThatNoWindowSees) {
  const op::ConvolutionBackwardData operation{.window = {.kernel = {1, 2}, .stride = {1, 2}},
                                              .src_shape = {1, 1, 1, 5}};
  const auto diff_src = run_kernel(operation, {f32({1, 1, 1, 2}, {1, 100}), f32({1, 1, 1, 2}, {1, 10})});
  EXPECT_EQ(diff_src, (std::vector<float>{1, 10, 100, 1000, 0}));
}

TEST(ReferenceConvolutionBackwardData, KeepsGroupsApart) {
  const op::ConvolutionBackwardData operation{.window = {}, .groups = 2, .src_shape = {1, 2, 1, 1}};
  const auto diff_src = run_kernel(operation, {f32({1, 4, 1, 1}, kDigits), f32({4, 1, 1, 1}, {1, 2, 3, 4})});
  EXPECT_EQ(diff_src, (std::vector<float>{21, 4300}));
}

TEST(ReferenceConvolutionBackwardWeights, FollowsAsymmetricPaddingAndSumsTheBias) {
  const op::ConvolutionBackwardWeights operation{.window = asymmetric(), .weights_shape = {1, 1, 2, 2}, .bias = true};
  BoundKernel kernel(operation, {f32({1, 1, 2, 2}, {1, 2, 3, 4}), f32({1, 1, 2, 2}, kDigits)});
  kernel.run();
  EXPECT_EQ(kernel.output(0), (std::vector<float>{2100, 200, 4321, 402}));
  EXPECT_EQ(kernel.output(1), (std::vector<float>{1111}));
}

TEST(ReferenceConvolutionBackwardWeights, KeepsGroupsApart) {
  const op::ConvolutionBackwardWeights operation{.window = {}, .groups = 2, .weights_shape = {4, 1, 1, 1}};
  const auto diff_weights = run_kernel(operation, {f32({1, 2, 1, 1}, {2, 3}), f32({1, 4, 1, 1}, kDigits)});
  EXPECT_EQ(diff_weights, (std::vector<float>{2, 20, 300, 3000}));
}

TEST(ReferenceConvolutionBackwardWeights, SumsOverTheBatch) {
  const op::ConvolutionBackwardWeights operation{.window = {}, .weights_shape = {1, 1, 1, 1}, .bias = true};
  BoundKernel kernel(operation, {f32({2, 1, 1, 1}, {2, 3}), f32({2, 1, 1, 1}, {1, 10})});
  kernel.run();
  EXPECT_EQ(kernel.output(0), (std::vector<float>{32}));
  EXPECT_EQ(kernel.output(1), (std::vector<float>{11}));
}

}  // namespace
}  // namespace trireme
