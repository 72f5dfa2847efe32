#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using op::BinaryKind;
using op::UnaryKind;
using testkit::BoundKernel;
using testkit::expect_close;
using testkit::f32;
using testkit::run_kernel;

std::vector<float> unary(UnaryKind kind, std::vector<float> values, float alpha = 0, float beta = 0) {
  return run_kernel(op::Unary{.kind = kind, .alpha = alpha, .beta = beta}, {f32({std::ssize(values)}, values)});
}

TEST(ReferenceUnary, KnownValues) {
  EXPECT_EQ(unary(UnaryKind::relu, {-2, 0, 3}), (std::vector<float>{0, 0, 3}));
  EXPECT_EQ(unary(UnaryKind::leaky_relu, {-2, 3}, 0.25f), (std::vector<float>{-0.5, 3}));
  expect_close(unary(UnaryKind::elu, {-1, 3}, 2), {-1.2642411f, 3});
  expect_close(unary(UnaryKind::sigmoid, {0, std::log(3.0f)}), {0.5, 0.75});
  expect_close(unary(UnaryKind::tanh, {0, 1}), {0, 0.76159416f});
  expect_close(unary(UnaryKind::softplus, {0, 500, -500}), {0.69314718f, 500, 0});
  expect_close(unary(UnaryKind::swish, {std::log(3.0f), -1}), {0.75f * std::log(3.0f), -0.26894142f});
  expect_close(unary(UnaryKind::gelu, {1, -1}), {0.84134475f, -0.15865525f});
  EXPECT_EQ(unary(UnaryKind::abs, {-2, 3}), (std::vector<float>{2, 3}));
  EXPECT_EQ(unary(UnaryKind::square, {-2, 3}), (std::vector<float>{4, 9}));
  EXPECT_EQ(unary(UnaryKind::sqrt, {4, 9}), (std::vector<float>{2, 3}));
  expect_close(unary(UnaryKind::exp, {0, 1}), {1, 2.7182818f});
  expect_close(unary(UnaryKind::log, {1, 10}), {0, 2.3025851f});
  EXPECT_EQ(unary(UnaryKind::negate, {-2, 3}), (std::vector<float>{2, -3}));
  EXPECT_EQ(unary(UnaryKind::clip, {-2, 0.5f, 3}, -1, 2), (std::vector<float>{-1, 0.5f, 2}));
  EXPECT_EQ(unary(UnaryKind::affine, {-2, 3}, 0.5f, 4), (std::vector<float>{3, 5.5f}));
}

TEST(ReferenceUnary, ClipPassesNoGradientAtItsEnds) {
  const op::UnaryBackward operation{.kind = UnaryKind::clip, .alpha = -1, .beta = 2};
  EXPECT_EQ(run_kernel(operation, {f32({3}, {5, 6, 7}), f32({3}, {-1, 0, 2})}), (std::vector<float>{0, 6, 0}));
}

TEST(ReferenceUnary, ReluLetsNaNThroughSoThatItIsSeen) {
  EXPECT_TRUE(std::isnan(unary(UnaryKind::relu, {std::nanf("")})[0]));
}

TEST(ReferenceUnary, ReluPassesNoGradientAtZero) {
  const auto diff_src =
      run_kernel(op::UnaryBackward{.kind = UnaryKind::relu}, {f32({3}, {5, 6, 7}), f32({3}, {0, 2, -1})});
  EXPECT_EQ(diff_src, (std::vector<float>{0, 6, 0}));
}

TEST(ReferenceUnary, RunsInPlace) {
  BoundKernel kernel(op::Unary{.kind = UnaryKind::relu}, {f32({2}, {-1, 2})});
  EXPECT_EQ(kernel.choice().in_place, (std::vector<std::pair<int, int>>{{0, 0}}));
  kernel.share(0, 0);
  kernel.run();
  EXPECT_EQ(kernel.input(0), (std::vector<float>{0, 2}));
}

HostTensor two_by_three() { return f32({2, 3}, {1, 2, 3, 4, 5, 6}); }

TEST(ReferenceBinary, Broadcasts) {
  const op::Binary subtract{.kind = BinaryKind::subtract};
  EXPECT_EQ(run_kernel(subtract, {two_by_three(), f32({3}, {10, 20, 30})}),
            (std::vector<float>{-9, -18, -27, -6, -15, -24}));
  EXPECT_EQ(run_kernel(subtract, {f32({2, 1}, {10, 20}), two_by_three()}), (std::vector<float>{9, 8, 7, 16, 15, 14}));
  EXPECT_EQ(run_kernel(subtract, {f32({}, {1}), two_by_three()}), (std::vector<float>{0, -1, -2, -3, -4, -5}));
  EXPECT_EQ(run_kernel(op::Binary{.kind = BinaryKind::multiply}, {f32({2, 1}, {1, 10}), f32({1, 3}, {1, 2, 3})}),
            (std::vector<float>{1, 2, 3, 10, 20, 30}));
}

TEST(ReferenceBinary, EveryKind) {
  const HostTensor a = f32({3}, {1, 4, -6}), b = f32({3}, {2, 4, 3});
  const auto apply = [&](BinaryKind kind) { return run_kernel(op::Binary{.kind = kind}, {a, b}); };
  EXPECT_EQ(apply(BinaryKind::add), (std::vector<float>{3, 8, -3}));
  EXPECT_EQ(apply(BinaryKind::subtract), (std::vector<float>{-1, 0, -9}));
  EXPECT_EQ(apply(BinaryKind::multiply), (std::vector<float>{2, 16, -18}));
  EXPECT_EQ(apply(BinaryKind::divide), (std::vector<float>{0.5, 1, -2}));
  EXPECT_EQ(apply(BinaryKind::maximum), (std::vector<float>{2, 4, 3}));
  EXPECT_EQ(apply(BinaryKind::minimum), (std::vector<float>{1, 4, -6}));
  EXPECT_EQ(apply(BinaryKind::equal), (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(apply(BinaryKind::greater_equal), (std::vector<float>{0, 1, 0}));
}

TEST(ReferenceBinary, FusesRelu) {
  const op::Binary operation{.kind = BinaryKind::add, .activation = op::Activation::relu};
  EXPECT_EQ(run_kernel(operation, {f32({2}, {1, 2}), f32({2}, {-3, 3})}), (std::vector<float>{0, 5}));
}

TEST(ReferenceBinary, OnlyAnInputOfTheFullShapeMayBeWrittenOver) {
  const BoundKernel kernel(op::Binary{}, {f32({3}, {1, 2, 3}), two_by_three()});
  EXPECT_EQ(kernel.choice().in_place, (std::vector<std::pair<int, int>>{{1, 0}}));
}

TEST(ReferenceBroadcast, RepeatsAndScales) {
  EXPECT_EQ(run_kernel(op::Broadcast{.shape = {2, 3}, .scale = 0.5f}, {f32({2, 1}, {2, 4})}),
            (std::vector<float>{1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(run_kernel(op::Broadcast{.shape = {2, 2}}, {f32({2}, {1, 2})}), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(run_kernel(op::Broadcast{.shape = {3}}, {f32({}, {7})}), (std::vector<float>{7, 7, 7}));
}

}  // namespace
}  // namespace trireme
