// Flops and bytes of operations: multiply and add count as two, memory is read and written once.
#include <gtest/gtest.h>

#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

class CostOf : public ::testing::Test {
 protected:
  Tensor input(Shape shape) { return placeholder(graph_, std::move(shape)); }
  Cost of(Tensor tensor) { return cost(graph_.node(tensor)); }

  Graph graph_;
};

TEST_F(CostOf, Convolution) {
  const op::Window window{.stride = {2, 2}, .pad_before = {1, 1}, .pad_after = {1, 1}};
  const Cost c = of(convolution(input({2, 6, 8, 8}), input({4, 3, 3, 3}), window, 2));
  EXPECT_EQ(c.flops, 2.0 * (2 * 4 * 4 * 4) * (3 * 3 * 3));
  EXPECT_EQ(c.bytes, 4.0 * (2 * 6 * 8 * 8 + 4 * 3 * 3 * 3 + 2 * 4 * 4 * 4));
}

TEST_F(CostOf, BackwardConvolutionsDoTheForwardsWork) {
  const Tensor src = input({2, 3, 8, 8}), weights = input({4, 3, 3, 3});
  const op::Window window{.kernel = {3, 3}};
  const Tensor dst = convolution(src, weights, window);
  const Tensor data = graph_.add(op::ConvolutionBackwardData{window, 1, src.shape()}, {dst, weights});
  const Tensor diff = graph_.add(op::ConvolutionBackwardWeights{window, 1, weights.shape()}, {src, dst});
  EXPECT_EQ(of(data).flops, of(dst).flops);
  EXPECT_EQ(of(diff).flops, of(dst).flops);
}

TEST_F(CostOf, LinearLayers) {
  EXPECT_EQ(of(fully_connected(input({8, 5, 2}), input({3, 5, 2}))).flops, 2.0 * 8 * 3 * 10);
  EXPECT_EQ(of(matmul(input({4, 2}), input({4, 3}), true)).flops, 2.0 * 2 * 3 * 4);
}

TEST_F(CostOf, SourcesAndMovesComputeNothing) {
  const Tensor src = input({2, 3});
  EXPECT_EQ(of(src).bytes, 0);
  EXPECT_EQ(of(concat({src, src})).flops, 0);
  EXPECT_EQ(of(concat({src, src})).bytes, 4.0 * 24);
  EXPECT_EQ(of(slice(src, {0, 0}, {1, 1})).bytes, 4.0 * 2);
}

TEST_F(CostOf, UpdatesReadAndWriteValuesAndState) {
  const Tensor w = variable(graph_, {10}, op::Initializer::constant(0)), rate = constant(graph_, 0.1f);
  const auto bytes = [&](op::OptimizerKind kind) {
    return of(graph_.add(op::ApplyGradients{{.kind = kind}}, {rate, w, input({10})})).bytes;
  };
  EXPECT_EQ(bytes(op::OptimizerKind::sgd), 4.0 * (1 + 3 * 10));
  EXPECT_EQ(bytes(op::OptimizerKind::momentum), 4.0 * (1 + 5 * 10));
  EXPECT_EQ(bytes(op::OptimizerKind::adam), 4.0 * (1 + 7 * 10));
  EXPECT_EQ(of(graph_.add(op::UnscaledRates{}, {rate, rate, input({10})})).bytes, 4.0 * (2 + 10 + 2));
}

}  // namespace
}  // namespace trireme
