// Shape inference of every operation on input that is right.
#include <gtest/gtest.h>

#include <cmath>

#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

class Infer : public ::testing::Test {
 protected:
  Tensor input(Shape shape) { return placeholder(graph_, std::move(shape)); }
  Tensor labels(std::int64_t batch) { return placeholder(graph_, {batch}, "labels", DataType::i32); }
  Shape output(Tensor tensor, int index) { return graph_.output(tensor.node, index).shape(); }

  Graph graph_;
};

TEST_F(Infer, Sources) {
  EXPECT_EQ(labels(4).type(), (TensorType{DataType::i32, {4}}));
  EXPECT_EQ(variable(graph_, {2, 3}, op::Initializer::constant(0)).shape(), (Shape{2, 3}));
  EXPECT_EQ(constant(graph_, 2.0f).shape(), Shape{});
}

TEST_F(Infer, VarianceScalingCorrectsForTheTruncation) {
  const op::Initializer initializer = op::Initializer::variance_scaling(1.0f, 100);
  EXPECT_EQ(initializer.kind, op::Initializer::Kind::truncated_normal);
  EXPECT_NEAR(initializer.stddev, 0.1 / 0.8796256610342398, 1e-7);
}

TEST_F(Infer, ConvolutionTakesTheKernelFromTheWeights) {
  const op::Window window = op::same_padding({.kernel = {7, 7}, .stride = {2, 2}}, 224, 224);
  const Tensor dst = convolution(input({8, 3, 224, 224}), input({64, 3, 7, 7}), window);
  EXPECT_EQ(dst.shape(), (Shape{8, 64, 112, 112}));
  EXPECT_EQ(graph_.node(dst).as<op::Convolution>()->window.kernel, (op::Pair{7, 7}));
}

TEST_F(Infer, ConvolutionWithGroupsDilationAndBias) {
  const op::Window window{.dilation = {2, 2}, .pad_before = {1, 0}, .pad_after = {0, 2}};
  const Tensor dst = convolution_bias(input({2, 6, 9, 9}), input({4, 3, 3, 3}), input({4}), window, 2);
  EXPECT_EQ(dst.shape(), (Shape{2, 4, 6, 7}));
}

TEST_F(Infer, FusedConvolutionTakesTheAddendLast) {
  const op::Convolution fused{.window = {}, .bias = true, .add = true, .activation = op::Activation::relu};
  const Tensor dst = graph_.add(fused, {input({2, 3, 4, 4}), input({5, 3, 1, 1}), input({5}), input({2, 5, 4, 4})});
  EXPECT_EQ(dst.shape(), (Shape{2, 5, 4, 4}));
}

TEST_F(Infer, ConvolutionBackward) {
  const op::Window window{.kernel = {3, 3}, .stride = {2, 2}};
  const Tensor data =
      graph_.add(op::ConvolutionBackwardData{window, 1, {2, 3, 8, 8}}, {input({2, 4, 3, 3}), input({4, 3, 3, 3})});
  EXPECT_EQ(data.shape(), (Shape{2, 3, 8, 8}));
  const Tensor weights = graph_.add(op::ConvolutionBackwardWeights{window, 1, {4, 3, 3, 3}, true},
                                    {input({2, 3, 8, 8}), input({2, 4, 3, 3})});
  EXPECT_EQ(weights.shape(), (Shape{4, 3, 3, 3}));
  EXPECT_EQ(output(weights, 1), Shape{4});
}

TEST_F(Infer, Pooling) {
  const Tensor src = input({2, 64, 112, 112});
  const op::Window same = op::same_padding({.kernel = {3, 3}, .stride = {2, 2}}, 112, 112);
  EXPECT_EQ(max_pool(src, same).shape(), (Shape{2, 64, 56, 56}));
  const Tensor average = average_pool(src, {.kernel = {2, 3}, .stride = {2, 3}}, true);
  EXPECT_EQ(average.shape(), (Shape{2, 64, 56, 37}));
  EXPECT_EQ(graph_.node(average).as<op::Pool>()->kind, op::PoolKind::average_include_padding);
}

TEST_F(Infer, LinearLayers) {
  EXPECT_EQ(fully_connected(input({8, 256, 6, 6}), input({10, 256, 6, 6})).shape(), (Shape{8, 10}));
  EXPECT_EQ(fully_connected_bias(input({8, 5}), input({3, 5}), input({3})).shape(), (Shape{8, 3}));
  const Tensor weights = graph_.add(op::FullyConnectedBackwardWeights{true}, {input({8, 2, 3}), input({8, 4})});
  EXPECT_EQ(weights.shape(), (Shape{4, 2, 3}));
  EXPECT_EQ(output(weights, 1), Shape{4});
  EXPECT_EQ(matmul(input({2, 3}), input({3, 4})).shape(), (Shape{2, 4}));
  EXPECT_EQ(matmul(input({3, 2}), input({4, 3}), true, true).shape(), (Shape{2, 4}));
  EXPECT_EQ(add_bias(input({2, 3, 5}), input({3})).shape(), (Shape{2, 3, 5}));
}

TEST_F(Infer, BatchNormGivesStatisticsAndBackwardGivesWhatFusingAdds) {
  const Tensor src = input({4, 3, 5, 5});
  const Tensor dst = graph_.add(op::BatchNorm{}, {src, input({3}), input({3})});
  EXPECT_EQ(dst.shape(), src.shape());
  EXPECT_EQ(output(dst, 1), Shape{3});
  EXPECT_EQ(output(dst, 2), Shape{3});
  const op::BatchNormBackward fused{.gamma = true, .add = true, .activation = op::Activation::relu};
  const Tensor diff_src = graph_.add(fused, {src, input({3}), input({3}), input({3}), input(src.shape()), dst});
  EXPECT_EQ(graph_.node(diff_src).outputs.size(), 4u);
  EXPECT_EQ(output(diff_src, 3), src.shape());
  const Tensor plain =
      graph_.add(op::BatchNormBackward{.gamma = false}, {src, input({3}), input({3}), input(src.shape())});
  EXPECT_EQ(graph_.node(plain).outputs.size(), 2u);
  const op::BatchNormBackward by_src{.gamma = false, .activation = op::Activation::relu, .mask_from_src = true};
  EXPECT_NO_THROW(graph_.add(by_src, {src, input({3}), input({3}), input(src.shape()), input({3})}));
  EXPECT_THROW(graph_.add(by_src, {src, input({3}), input({3}), input(src.shape()), dst}), Error);
}

TEST_F(Infer, BinaryBroadcastsAsNumpyDoes) {
  EXPECT_EQ((input({2, 1, 4}) + input({3, 1})).shape(), (Shape{2, 3, 4}));
  EXPECT_EQ((input({2, 3}) * 2.0f).shape(), (Shape{2, 3}));
  EXPECT_EQ(hard_swish(input({2, 3})).shape(), (Shape{2, 3}));
  EXPECT_EQ((constant(graph_, 1.0f) - input({2})).shape(), Shape{2});
  EXPECT_EQ(graph_.add(op::Broadcast{{4, 2, 3}}, {input({2, 1})}).shape(), (Shape{4, 2, 3}));
}

TEST_F(Infer, Structure) {
  const Tensor joined = concat({input({2, 3, 4}), input({2, 5, 4})});
  EXPECT_EQ(joined.shape(), (Shape{2, 8, 4}));
  const std::vector<Tensor> parts = split(joined, {1, 7});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].shape(), (Shape{2, 1, 4}));
  EXPECT_EQ(parts[1].shape(), (Shape{2, 7, 4}));
  EXPECT_EQ(pad(joined, {0, 1, 2}, {0, 3, 0}).shape(), (Shape{2, 12, 6}));
  EXPECT_EQ(slice(joined, {1, 2, 0}, {1, 6, 3}).shape(), (Shape{1, 6, 3}));
  EXPECT_EQ(reshape(joined, {4, 16}).shape(), (Shape{4, 16}));
  EXPECT_EQ(flatten(input({2, 3, 4, 5})).shape(), (Shape{2, 60}));
  EXPECT_EQ(flatten(input({2})).shape(), (Shape{2, 1}));
}

TEST_F(Infer, Reductions) {
  const Tensor src = input({2, 3, 4, 5});
  EXPECT_EQ(reduce_mean(src, {3, 2}).shape(), (Shape{2, 3}));
  EXPECT_EQ(reduce_sum(src, {1}, true).shape(), (Shape{2, 1, 4, 5}));
  EXPECT_EQ(reduce_sum(src).shape(), Shape{});
  EXPECT_EQ(reduce(op::ReduceKind::max, src, {}, true).shape(), (Shape{1, 1, 1, 1}));
  EXPECT_EQ(l2_loss(src).shape(), Shape{});
}

TEST_F(Infer, Losses) {
  const Tensor logits = input({8, 10});
  EXPECT_EQ(softmax(logits).shape(), (Shape{8, 10}));
  EXPECT_EQ(softmax_cross_entropy(logits, labels(8), 0.1f).shape(), Shape{});
  EXPECT_EQ(top_k_accuracy(logits, labels(8), 50).shape(), Shape{}) << "more than there are classes is allowed";
}

TEST_F(Infer, UpdatesHaveNoOutput) {
  const Tensor w = variable(graph_, {3}, op::Initializer::constant(0));
  const Tensor update = graph_.add(op::ApplyGradients{}, {constant(graph_, 0.1f), w, input({3})});
  EXPECT_TRUE(graph_.node(update).outputs.empty());
  EXPECT_TRUE(is_update(graph_.node(update).op));
  EXPECT_FALSE(is_update(graph_.node(w).op));
}

TEST_F(Infer, RatesOfAScaledLossTakeThePlaceOfTheLearningRate) {
  const Tensor w = variable(graph_, {3}, op::Initializer::constant(0)), gradient = input({3});
  const Tensor rates =
      graph_.add(op::UnscaledRates{}, {constant(graph_, 0.1f), constant(graph_, 65536.0f), gradient, input({2, 5})});
  EXPECT_EQ(rates.shape(), Shape{2});
  const Tensor update = graph_.add(op::ApplyGradients{}, {rates, w, gradient});
  EXPECT_TRUE(graph_.node(update).outputs.empty());
}

TEST_F(Infer, WhichInputsAnUpdateWrites) {
  EXPECT_EQ(written_inputs(op::ApplyGradients{}, 5), (std::vector{1, 3}));
  EXPECT_EQ(written_inputs(op::MovingAverage{}, 2), std::vector{0});
  EXPECT_EQ(written_inputs(op::MovingAverage{.scales = {1, 1}}, 4), (std::vector{0, 2}));
  EXPECT_EQ(written_inputs(op::Assign{}, 2), std::vector{0});
  EXPECT_EQ(written_inputs(op::UpdateLossScale{}, 4), (std::vector{0, 1, 2}));
  EXPECT_TRUE(written_inputs(op::UnscaledRates{}, 4).empty());
  EXPECT_TRUE(written_inputs(op::Binary{}, 2).empty());
}

TEST(OperationNames, BackwardReadsDstWhereItTellsTheSlope) {
  EXPECT_TRUE(op::backward_uses_dst(op::UnaryKind::relu));
  EXPECT_TRUE(op::backward_uses_dst(op::UnaryKind::tanh));
  EXPECT_TRUE(op::backward_uses_dst(op::UnaryKind::clip));
  EXPECT_FALSE(op::backward_uses_dst(op::UnaryKind::square));
  EXPECT_FALSE(op::backward_uses_dst(op::UnaryKind::gelu));
}

}  // namespace
}  // namespace trireme
