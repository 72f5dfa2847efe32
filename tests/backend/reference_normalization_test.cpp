#include <gtest/gtest.h>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using op::Activation;
using testkit::BoundKernel;
using testkit::expect_close;
using testkit::f32;
using testkit::run_kernel;

// Two samples, two channels, two cells. Channel 0 is 1 2 3 6: mean 3, variance 3.5; channel 1 is its negative. With
// epsilon 0.5 the divisor is 2, so all results are short numbers.
constexpr float kEpsilon = 0.5f;
HostTensor src() { return f32({2, 2, 1, 2}, {1, 2, -1, -2, 3, 6, -3, -6}); }
HostTensor gamma() { return f32({2}, {2, 4}); }
HostTensor beta() { return f32({2}, {1, 0}); }
HostTensor mean() { return f32({2}, {3, -3}); }
HostTensor variance() { return f32({2}, {3.5, 3.5}); }
HostTensor addend() { return f32({2, 2, 1, 2}, {0.5, -1, -5, 0, 1, -3, 1, 7}); }

const std::vector<float> kNormalized{-1, 0, 4, 2, 1, 4, 0, -6};
const std::vector<float> kNormalizedAddRelu{0, 0, 0, 2, 2, 1, 1, 1};

TEST(ReferenceBatchNorm, NormalizesByTheBatchAndGivesTheStatistics) {
  BoundKernel kernel(op::BatchNorm{.epsilon = kEpsilon}, {src(), gamma(), beta()});
  kernel.run();
  expect_close(kernel.output(0), kNormalized);
  expect_close(kernel.output(1), {3, -3});
  expect_close(kernel.output(2), {3.5, 3.5});
}

TEST(ReferenceBatchNorm, WithoutGammaTheScaleIsOne) {
  expect_close(run_kernel(op::BatchNorm{.epsilon = kEpsilon, .gamma = false}, {src(), beta()}),
               {0, 0.5, 1, 0.5, 1, 2.5, 0, -1.5});
}

TEST(ReferenceBatchNorm, FusesAddAndRelu) {
  const op::BatchNorm operation{.epsilon = kEpsilon, .add = true, .activation = Activation::relu};
  expect_close(run_kernel(operation, {src(), gamma(), beta(), addend()}), kNormalizedAddRelu);
}

TEST(ReferenceBatchNorm, TakesMatrices) {
  expect_close(
      run_kernel(op::BatchNorm{.epsilon = kEpsilon, .gamma = false}, {f32({4, 1}, {1, 2, 3, 6}), f32({1}, {0})}),
      {-1, -0.5, 0, 1.5});
}

// diff_src = gamma/2 · (d − sum(d)/4 − x̂·sum(d·x̂)/4) with x̂ = −1 −0.5 0 1.5 in channel 0 and its negative in channel 1.
TEST(ReferenceBatchNormBackward, KnownValues) {
  const HostTensor diff_dst = f32({2, 2, 1, 2}, {1, 2, 1, 0, 3, 4, 0, 0});
  BoundKernel kernel(op::BatchNormBackward{.epsilon = kEpsilon}, {src(), mean(), variance(), gamma(), diff_dst});
  kernel.run();
  expect_close(kernel.output(0), {-0.5, 0, 1, -0.75, 0.5, 0, -0.5, 0.25});
  expect_close(kernel.output(1), {10, 1});
  expect_close(kernel.output(2), {4, 1});
}

TEST(ReferenceBatchNormBackward, WithoutGamma) {
  const HostTensor diff_dst = f32({2, 2, 1, 2}, {1, 2, 1, 0, 3, 4, 0, 0});
  BoundKernel kernel(op::BatchNormBackward{.epsilon = kEpsilon, .gamma = false}, {src(), mean(), variance(), diff_dst});
  kernel.run();
  expect_close(kernel.output(0), {-0.25, 0, 0.25, -0.1875, 0.25, 0, -0.125, 0.0625});
  expect_close(kernel.output(1), {10, 1});
}

// The mask of dst leaves 0 0 3 4 of channel 0 and nothing of channel 1.
TEST(ReferenceBatchNormBackward, MasksByReluAndPassesTheMaskedGradientToTheAddend) {
  const HostTensor diff_dst = f32({2, 2, 1, 2}, {1, 2, 1, 0, 3, 4, 0, 0});
  const op::BatchNormBackward operation{.epsilon = kEpsilon, .add = true, .activation = Activation::relu};
  BoundKernel kernel(operation, {src(), mean(), variance(), gamma(), diff_dst, f32({2, 2, 1, 2}, kNormalizedAddRelu)});
  kernel.run();
  expect_close(kernel.output(0), {-0.25, -1, 0, 0, 1.25, 0, 0, 0});
  expect_close(kernel.output(1), {7, 0});
  expect_close(kernel.output(2), {6, 0});
  expect_close(kernel.output(3), {0, 0, 0, 0, 3, 4, 0, 0});
}

// Without an addend: kNormalized is positive at the last two of channel 0 and the first two of channel 1.
TEST(ReferenceBatchNormBackward, TheMaskFromSrcIsThatOfDst) {
  const HostTensor diff_dst = f32({2, 2, 1, 2}, {1, 2, 1, 5, 3, 4, 2, 3});
  op::BatchNormBackward operation{.epsilon = kEpsilon, .activation = Activation::relu};
  BoundKernel by_dst(operation, {src(), mean(), variance(), gamma(), diff_dst, f32({2, 2, 1, 2}, kNormalized)});
  by_dst.run();
  operation.mask_from_src = true;
  BoundKernel by_src(operation, {src(), mean(), variance(), gamma(), diff_dst, beta()});
  by_src.run();
  expect_close(by_src.output(1), {7, 6});
  for (std::size_t i = 0; i < 3; ++i) expect_close(by_src.output(i), by_dst.output(i));
}

TEST(ReferenceBatchNormBackward, SumsTheGradientsThatMeet) {
  // Together those of the case above.
  const HostTensor diff_dst = f32({2, 2, 1, 2}, {5, 2, -1, 0, 1, 6, 0, 1});
  const HostTensor diff_more = f32({2, 2, 1, 2}, {-4, 0, 2, 0, 2, -2, 0, -1});
  const op::BatchNormBackward operation{.epsilon = kEpsilon, .add = true, .activation = Activation::relu, .sum = true};
  const HostTensor dst = f32({2, 2, 1, 2}, kNormalizedAddRelu);
  BoundKernel kernel(operation, {src(), mean(), variance(), gamma(), diff_dst, diff_more, dst});
  kernel.run();
  expect_close(kernel.output(0), {-0.25, -1, 0, 0, 1.25, 0, 0, 0});
  expect_close(kernel.output(1), {7, 0});
  expect_close(kernel.output(3), {0, 0, 0, 0, 3, 4, 0, 0});
}

TEST(ReferenceBatchNormInference, UsesTheStatisticsGiven) {
  expect_close(run_kernel(op::BatchNormInference{.epsilon = kEpsilon}, {src(), gamma(), beta(), mean(), variance()}),
               kNormalized);
  // Mean 1 and variance 15.5 (divisor 4), without gamma.
  expect_close(run_kernel(op::BatchNormInference{.epsilon = kEpsilon, .gamma = false},
                          {f32({1, 1, 1, 2}, {3, -5}), f32({1}, {10}), f32({1}, {1}), f32({1}, {15.5})}),
               {10.5, 8.5});
}

TEST(ReferenceBatchNormInference, FusesAddAndRelu) {
  const op::BatchNormInference operation{.epsilon = kEpsilon, .add = true, .activation = Activation::relu};
  expect_close(run_kernel(operation, {src(), gamma(), beta(), mean(), variance(), addend()}), kNormalizedAddRelu);
}

// alpha/size is 1, so the scales of 1 2 3 are 1 + 1 + 4, 1 + 1 + 4 + 9 and 1 + 4 + 9.
TEST(ReferenceLrn, NormalizesAcrossNeighbouringChannels) {
  const op::Lrn operation{.size = 3, .alpha = 3, .beta = 1, .k = 1};
  expect_close(run_kernel(operation, {f32({1, 3, 1, 1}, {1, 2, 3})}), {1.0f / 6, 2.0f / 15, 3.0f / 14});
}

TEST(ReferenceLrn, BackwardReachesTheNeighbours) {
  const op::LrnBackward operation{.size = 3, .alpha = 3, .beta = 1, .k = 1};
  expect_close(run_kernel(operation, {f32({1, 3, 1, 1}, {1, 2, 3}), f32({1, 3, 1, 1}, {1, 0, 0})}),
               {1.0f / 9, -1.0f / 9, 0});
}

TEST(ReferenceLrn, DefaultsMatchTheFormula) {
  // (1 + 1e-4/5 · 300²)^−0.75 = 2.8^−0.75
  expect_close(run_kernel(op::Lrn{}, {f32({1, 1, 1, 1}, {300})}), {300 * 0.4619888f});
}

}  // namespace
}  // namespace trireme
