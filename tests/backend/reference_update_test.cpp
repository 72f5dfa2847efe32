#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using op::OptimizerKind;
using testkit::BoundKernel;
using testkit::expect_close;
using testkit::f32;

constexpr float kLearningRate = 0.1f;

// One variable that starts at 1, with the states that the rule starts with.
BoundKernel update_of_one(const op::OptimizerRule& rule, float gradient) {
  std::vector<std::vector<float>> states;
  for (int i = 0; i < op::state_count(rule.kind); ++i) states.push_back({op::initial_state(rule.kind, i)});
  return BoundKernel(op::ApplyGradients{rule}, {HostTensor(kLearningRate), f32({1}, {1}), f32({1}, {gradient})},
                     {states});
}

TEST(ReferenceApplyGradients, Sgd) {
  expect_close(update_of_one({.kind = OptimizerKind::sgd}, 0.5f).run().input(1), {0.95f});
}

TEST(ReferenceApplyGradients, WeightDecayIsAddedToTheGradient) {
  expect_close(update_of_one({.kind = OptimizerKind::sgd, .weight_decay = 0.1f}, 0.5f).run().input(1), {0.94f});
}

TEST(ReferenceApplyGradients, AFactorTakesTheScaleOutOfTheGradient) {
  BoundKernel kernel(op::ApplyGradients{{.kind = OptimizerKind::sgd, .weight_decay = 0.1f}},
                     {f32({2}, {kLearningRate, 0.25f}), f32({1}, {1}), f32({1}, {2})});
  expect_close(kernel.run().input(1), {0.94f});
}

TEST(ReferenceApplyGradients, AFactorOfZeroLeavesValuesAndStateAlone) {
  BoundKernel kernel(op::ApplyGradients{{.kind = OptimizerKind::momentum, .weight_decay = 0.1f}},
                     {f32({2}, {kLearningRate, 0}), f32({1}, {1}), f32({1}, {2})}, {{{3}}});
  EXPECT_EQ(kernel.run().input(1), std::vector{1.0f});
  EXPECT_EQ(kernel.state(0, 0), std::vector{3.0f});
}

TEST(ReferenceUnscaledRates, TheFactorIsZeroWhereAGradientIsNotFinite) {
  BoundKernel kernel(op::UnscaledRates{}, {HostTensor(0.5f), HostTensor(1024.0f), f32({1}, {7}), f32({2}, {1, 2})});
  EXPECT_EQ(kernel.run().output(), (std::vector{0.5f, 0x1p-10f}));
  for (const float value : {INFINITY, -INFINITY, NAN}) {
    kernel.set_input(3, {1, value});
    EXPECT_EQ(kernel.run().output(), (std::vector{0.5f, 0.0f}));
  }
  kernel.set_input(3, {1, 2});
  EXPECT_EQ(kernel.run().output(), (std::vector{0.5f, 0x1p-10f}));
}

TEST(ReferenceUpdateLossScale, HalvedByASkippedUpdateAndDoubledByGoodOnes) {
  BoundKernel kernel(op::UpdateLossScale{.growth_interval = 3},
                     {HostTensor(8.0f), HostTensor(0.0f), HostTensor(0.0f), f32({2}, {0.1f, 0.125f})});
  const auto expect_state = [&](float scale, float good, float skipped) {
    kernel.run();
    EXPECT_EQ(kernel.input(0)[0], scale);
    EXPECT_EQ(kernel.input(1)[0], good);
    EXPECT_EQ(kernel.input(2)[0], skipped);
  };
  expect_state(8, 1, 0);
  expect_state(8, 2, 0);
  expect_state(16, 0, 0);
  expect_state(16, 1, 0);
  kernel.set_input(3, {0.1f, 0});
  expect_state(8, 0, 1);
  expect_state(4, 0, 2);
}

TEST(ReferenceUpdateLossScale, TheScaleStaysWithinItsLimits) {
  BoundKernel kernel(op::UpdateLossScale{.growth_interval = 1},
                     {HostTensor(op::kMostLossScale), HostTensor(0.0f), HostTensor(0.0f), f32({2}, {0.1f, 1})});
  EXPECT_EQ(kernel.run().input(0)[0], op::kMostLossScale);
  kernel.set_input(0, {op::kLeastLossScale});
  kernel.set_input(3, {0.1f, 0});
  EXPECT_EQ(kernel.run().input(0)[0], op::kLeastLossScale);
}

TEST(ReferenceApplyGradients, Momentum) {
  BoundKernel kernel = update_of_one({.kind = OptimizerKind::momentum, .momentum = 0.9f}, 0.5f);
  expect_close(kernel.run({.step = 0}).input(1), {0.95f});
  expect_close(kernel.run({.step = 1}).input(1), {0.855f});  // m = 0.9·0.5 + 0.5
  expect_close(kernel.state(0, 0), {0.95f});
}

TEST(ReferenceApplyGradients, Nesterov) {
  BoundKernel kernel = update_of_one({.kind = OptimizerKind::nesterov, .momentum = 0.9f}, 0.5f);
  expect_close(kernel.run({.step = 0}).input(1), {0.905f});   // 1 − 0.1·(0.5 + 0.9·0.5)
  expect_close(kernel.run({.step = 1}).input(1), {0.7695f});  // − 0.1·(0.5 + 0.9·0.95)
}

TEST(ReferenceApplyGradients, RmsProp) {
  const op::OptimizerRule rule{.kind = OptimizerKind::rmsprop, .momentum = 0.9f, .decay = 0.9f, .epsilon = 1};
  BoundKernel kernel = update_of_one(rule, 2);
  expect_close(kernel.run({.step = 0}).input(1), {0.8681239f});  // s = 1.3, m = 0.2/sqrt(2.3)
  expect_close(kernel.run({.step = 1}).input(1), {0.6246788f});  // s = 1.57, m = 0.9·m + 0.2/sqrt(2.57)
  expect_close(kernel.state(0, 0), {1.57f});
}

TEST(ReferenceApplyGradients, Adam) {
  BoundKernel kernel = update_of_one({.kind = OptimizerKind::adam, .epsilon = 1e-8f}, 2);
  expect_close(kernel.run({.step = 0}).input(1), {0.9f});  // the first step is the learning rate, whatever the gradient
  kernel.set_input(2, {1});
  // m = 0.28, v = 0.004996, corrected by 1 − 0.81 and 1 − 0.998001. beta2 = 0.999 in float32 is 1.3e-8 off, which
  // 1 − beta2 magnifies a thousand times.
  expect_close(kernel.run({.step = 1}).input(1), {0.8067820f}, 1e-5f);
  expect_close(kernel.state(0, 0), {0.28f});
}

TEST(ReferenceApplyGradients, ManyVariablesAtOnce) {
  BoundKernel kernel(op::ApplyGradients{{.kind = OptimizerKind::momentum, .momentum = 0.5f}},
                     {HostTensor(kLearningRate), f32({2}, {1, 2}), f32({2}, {10, 20}), f32({1, 3}, {3, 4, 5}),
                      f32({1, 3}, {0, 10, -10})},
                     {{{0, 0}}, {{0, 8, 0}}});
  kernel.run();
  expect_close(kernel.input(1), {0, 0});
  expect_close(kernel.input(3), {3, 2.6f, 6});
  expect_close(kernel.state(0, 0), {10, 20});
  expect_close(kernel.state(1, 0), {0, 14, -10});
}

TEST(ReferenceMovingAverage, ScalesTheNewValue) {
  BoundKernel kernel(op::MovingAverage{.decay = 0.9f, .scales = {2}}, {f32({2}, {1, 0}), f32({2}, {5, 10})});
  expect_close(kernel.run().input(0), {1.9f, 2});
}

TEST(ReferenceMovingAverage, GoesOverAllVariables) {
  BoundKernel kernel(op::MovingAverage{.decay = 0.5f, .scales = {1, 3}},
                     {f32({2}, {1, 0}), f32({2}, {5, 10}), f32({1}, {4}), f32({1}, {2})});
  kernel.run();
  expect_close(kernel.input(0), {3, 5});
  expect_close(kernel.input(2), {5});
}

TEST(ReferenceAssign, Copies) {
  BoundKernel kernel(op::Assign{}, {f32({2}, {1, 2}), f32({2}, {3, 4})});
  EXPECT_EQ(kernel.run().input(0), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace trireme
