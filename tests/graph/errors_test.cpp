// What a user can get wrong while building a graph: each message names the node, the shapes and what was expected.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

using testkit::expect_bad_input;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class BuildingErrors : public ::testing::Test {
 protected:
  Tensor input(Shape shape) { return placeholder(graph_, std::move(shape)); }
  Tensor labels(Shape shape) { return placeholder(graph_, std::move(shape), "labels", DataType::i32); }
  Tensor weights(Shape shape) { return variable(graph_, std::move(shape), op::Initializer::constant(0), "weights"); }

  Graph graph_;
};

TEST_F(BuildingErrors, NodeOperationAndShapesComeFirst) {
  const Tensor src = input({8, 3, 2, 2}), w = weights({64, 3, 7, 7});
  const Graph::Scope scope(graph_, "stage1");
  expect_bad_input([&] { convolution(src, w, {}, 1, "conv"); },
                   {"node 'stage1/conv' (convolution, inputs 8x3x2x2, 64x3x7x7): ", "output would have height -4"});
}

TEST_F(BuildingErrors, Sources) {
  expect_bad_input(
      [&] {
        placeholder(graph_, {0, 3}, "images");
      },
      {"node 'images' (placeholder): ", "0x3", "extent 0 on axis 0", "1 or more"});
  expect_bad_input([&] { weights({3, -1}); }, {"node 'weights' (variable)", "extent -1 on axis 1"});
  expect_bad_input([&] { constant(graph_, HostTensor()); }, {"1 elements", "0 values"});
  expect_bad_input([&] { variable(graph_, {1}, op::Initializer::constant(kNan)); }, {"nan", "finite"});
  expect_bad_input([&] { variable(graph_, {1}, op::Initializer::truncated_normal(-1)); }, {"-1", "0 or more"});
  expect_bad_input([&] { variable(graph_, {1}, op::Initializer::uniform(1, 0)); }, {"1 to 0", "low end first"});
  expect_bad_input([&] { op::Initializer::variance_scaling(1, 0); }, {"fan-in", "0"});
}

TEST_F(BuildingErrors, Convolution) {
  const Tensor src = input({2, 6, 8, 8});
  expect_bad_input(
      [&] {
        convolution(input({2, 6}), weights({4, 6, 3, 3}));
      },
      {"src has shape 2x6 of rank 2", "rank 4"});
  expect_bad_input([&] { convolution(src, weights({4, 6})); }, {"weights has shape 4x6", "rank 4"});
  expect_bad_input([&] { convolution(src, weights({4, 5, 3, 3})); }, {"5 input channels per group", "expected 6"});
  expect_bad_input([&] { convolution(src, weights({4, 6, 3, 3}), {}, 4); }, {"6 channels", "4 groups"});
  expect_bad_input([&] { convolution(src, weights({5, 3, 3, 3}), {}, 2); }, {"5 output channels", "2 groups"});
  expect_bad_input([&] { convolution(src, weights({4, 6, 3, 3}), {}, 0); }, {"groups is 0"});
  expect_bad_input([&] { convolution(src, weights({4, 6, 3, 3}), {.stride = {0, 1}}); }, {"stride is 0x1"});
  expect_bad_input(
      [&] {
        convolution(src, weights({4, 6, 3, 3}), {.pad_before = {0, -1}});
      },
      {"padding before is 0x-1"});
  expect_bad_input(
      [&] {
        graph_.add(op::Convolution{.window = {.kernel = {3, 5}}}, {src, weights({4, 6, 3, 3})});
      },
      {"kernel is 3x5", "weights' extents 3x3"});
  expect_bad_input([&] { convolution_bias(src, weights({4, 6, 3, 3}), input({3})); }, {"bias has shape 3, expected 4"});
  expect_bad_input([&] { graph_.add(op::Convolution{}, {src}); }, {"expected 2 inputs (src, weights), got 1"});
  expect_bad_input(
      [&] {
        graph_.add(op::ConvolutionBackwardData{{}, 1, {2, 6, 8, 8}}, {src, weights({4, 6, 1, 1})});
      },
      {"diff_dst has shape 2x6x8x8, expected 2x4x8x8"});
}

TEST_F(BuildingErrors, Pooling) {
  const Tensor src = input({2, 6, 8, 8});
  expect_bad_input(
      [&] {
        max_pool(src, {.kernel = {2, 2}, .pad_before = {0, 2}});
      },
      {"wholly in the padding", "width 2 before and 0 after", "kernel of 2"});
  expect_bad_input(
      [&] {
        average_pool(src, {.kernel = {2, 2}, .pad_after = {2, 0}}, true);
      },
      {"wholly in the padding", "height 0 before and 2 after"});
  expect_bad_input([&] { max_pool(src, {.kernel = {9, 9}}); }, {"node 'max_pool' (pool", "height 0"});
  expect_bad_input([&] { max_pool(src, {.kernel = {2, 2}, .dilation = {2, 2}}); }, {"dilation is 2x2"});
}

TEST_F(BuildingErrors, LinearLayers) {
  expect_bad_input(
      [&] {
        fully_connected(input({8, 256, 6, 6}), weights({10, 9216}));
      },
      {"weights has shape 10x9216, expected 10x256x6x6"});
  expect_bad_input([&] { fully_connected(input({8}), weights({10, 8})); }, {"src has shape 8 of rank 1"});
  expect_bad_input([&] { fully_connected(input({8, 2}), weights({})); }, {"weights has shape scalar"});
  expect_bad_input([&] { fully_connected_bias(input({8, 2}), weights({3, 2}), input({2})); }, {"bias", "expected 3"});
  expect_bad_input([&] { matmul(input({2, 3}), input({2, 3})); }, {"a is 2x3 and b is 2x3", "inner extents 3 and 2"});
  expect_bad_input([&] { matmul(input({2, 3, 4}), input({2, 3})); }, {"a has shape 2x3x4", "a matrix"});
  expect_bad_input([&] { add_bias(input({2, 3}), input({2})); }, {"bias has shape 2, expected 3", "one per channel"});
}

TEST_F(BuildingErrors, Normalization) {
  const Tensor src = input({2, 3, 4, 4});
  expect_bad_input(
      [&] {
        graph_.add(op::BatchNorm{}, {src, input({3}), input({4})}, "bn");
      },
      {"node 'bn' (batch_norm", "beta has shape 4, expected 3"});
  expect_bad_input(
      [&] {
        graph_.add(op::BatchNorm{.gamma = false}, {src, input({3}), input({3})});
      },
      {"expected 2 inputs (src, beta), got 3"});
  expect_bad_input(
      [&] {
        graph_.add(op::BatchNorm{.epsilon = kNan}, {src, input({3}), input({3})});
      },
      {"epsilon is nan"});
  expect_bad_input([&] { lrn(src, {.size = 4}); }, {"size is 4", "odd"});
  expect_bad_input([&] { lrn(src, {.k = 0}); }, {"k is 0", "above 0"});
  expect_bad_input([&] { lrn(input({2, 3})); }, {"rank 4"});
}

TEST_F(BuildingErrors, Elementwise) {
  const Tensor src = input({2, 3});
  expect_bad_input([&] { src + input({2}); },
                   {"node 'add' (binary, inputs 2x3, 2)", "3 and 2 on axis 1", "one of them must be 1"});
  expect_bad_input([&] { src + labels({3}); }, {"b has elements of type i32, expected f32"});
  expect_bad_input([&] { unary(op::UnaryKind::elu, src, kNan); }, {"alpha is nan"});
  expect_bad_input([&] { unary(op::UnaryKind::leaky_relu, src, -0.5f); }, {"alpha is -0.5"});
  expect_bad_input([&] { clip(src, 1, 0.5f); }, {"clip from 1 to 0.5, expected low <= high"});
  expect_bad_input([&] { src + kNan; }, {"beta is nan"});
  expect_bad_input([&] { src / 0; }, {"alpha is inf"});
  for (const float rate : {1.0f, -0.1f, kNan, kInf}) {
    expect_bad_input([&] { dropout(src, rate); }, {"dropout rate is", "at least 0 and less than 1"});
  }
  expect_bad_input([&] { graph_.add(op::Broadcast{{2, 4}}, {src}); }, {"2x3"});
  expect_bad_input([&] { graph_.add(op::Broadcast{{3}}, {src}); },
                   {"src has shape 2x3, which does not broadcast to 3"});
}

TEST_F(BuildingErrors, Structure) {
  const Tensor src = input({2, 6, 4});
  expect_bad_input([&] { concat({src, input({2, 3, 5})}); }, {"input 1 has shape 2x3x5, input 0 has 2x6x4", "axis 1"});
  expect_bad_input([&] { concat({src, input({2, 3})}); }, {"input 1 has shape 2x3"});
  expect_bad_input([&] { concat({src}, 3); }, {"axis 3", "0 to 2"});
  expect_bad_input([&] { concat({}); }, {"one or more"});
  expect_bad_input([&] { split(src, {2, 3}); }, {"add up to 5, expected 6"});
  expect_bad_input([&] { split(src, {6, 0}); }, {"a size is 0"});
  expect_bad_input([&] { split(src, {6}, -1); }, {"axis -1"});
  expect_bad_input([&] { pad(src, {0, 0}, {0, 0, 0}); }, {"before has 2 entries, expected 3"});
  expect_bad_input([&] { pad(src, {0, 0, 0}, {0, -1, 0}); }, {"axis 1", "-1 after"});
  expect_bad_input([&] { pad(src, {0, 0, 0}, {0, 1, 0}, kNan); }, {"value is nan"});
  expect_bad_input([&] { slice(src, {0, 4, 0}, {2, 3, 4}); }, {"begins at 4 with size 3 on axis 1", "0 to 6"});
  expect_bad_input([&] { reshape(src, {7, 7}); }, {"48 elements (2x6x4)", "7x7 has 49"});
  expect_bad_input([&] { reshape(src, {-6, -8}); }, {"extent -6"});
  expect_bad_input([&] { flatten(constant(graph_, 1.0f)); }, {"flatten", "scalar"});
}

TEST_F(BuildingErrors, Reductions) {
  const Tensor src = input({2, 3});
  expect_bad_input([&] { reduce_sum(src, {2}); }, {"node 'reduce_sum' (reduce", "axis 2", "0 to 1"});
  expect_bad_input([&] { reduce_sum(src, {1, 1}); }, {"axis 1 comes after axis 1", "without repetition"});
  expect_bad_input([&] { reduce_sum(constant(graph_, 1.0f), {0}); }, {"axis 0", "scalar"});
  expect_bad_input([&] { l2_loss(src, kInf); }, {"scale is inf"});
}

TEST_F(BuildingErrors, Losses) {
  const Tensor logits = input({8, 10});
  expect_bad_input([&] { softmax_cross_entropy(logits, input({8})); },
                   {"labels has elements of type f32, expected i32"});
  expect_bad_input([&] { softmax_cross_entropy(logits, labels({7})); }, {"7 i32", "labels has shape 7, expected 8"});
  expect_bad_input([&] { softmax_cross_entropy(input({8}), labels({8})); }, {"logits has shape 8", "batch x classes"});
  expect_bad_input([&] { softmax_cross_entropy(logits, labels({8}), 1.5f); }, {"label_smoothing is 1.5"});
  expect_bad_input([&] { softmax_cross_entropy(logits, labels({8}), kNan); }, {"label_smoothing is nan"});
  expect_bad_input([&] { top_k_accuracy(logits, labels({8}), 0); }, {"k is 0", "1 or more"});
}

TEST_F(BuildingErrors, Updates) {
  const Tensor w = weights({3}), rate = constant(graph_, 0.1f);
  expect_bad_input(
      [&] {
        graph_.add(op::Assign{}, {input({3}), w});
      },
      {"input 0", "'placeholder'", "expected a variable"});
  expect_bad_input([&] { graph_.add(op::ApplyGradients{}, {rate, w, w, input({3}), w}); }, {"input 3", "variable"});
  expect_bad_input(
      [&] {
        graph_.add(op::ApplyGradients{}, {rate, w, input({2})});
      },
      {"gradient has shape 2, expected 3"});
  expect_bad_input([&] { graph_.add(op::ApplyGradients{}, {rate, w}); }, {"expected learning_rate", "got 2 inputs"});
  expect_bad_input([&] { graph_.add(op::ApplyGradients{}, {input({1}), w, w}); }, {"learning_rate has shape 1"});
  expect_bad_input(
      [&] {
        graph_.add(op::ApplyGradients{{.weight_decay = kNan}}, {rate, w, w});
      },
      {"weight_decay is nan"});
  expect_bad_input([&] { graph_.add(op::UnscaledRates{}, {rate, rate}); }, {"expected learning_rate", "got 2 inputs"});
  expect_bad_input([&] { graph_.add(op::UnscaledRates{}, {rate, w, w}); }, {"scale has shape 3"});
  expect_bad_input(
      [&] {
        graph_.add(op::UpdateLossScale{}, {weights({}), weights({}), weights({}), rate});
      },
      {"rates has shape scalar, expected 2"});
  expect_bad_input(
      [&] {
        graph_.add(op::UpdateLossScale{0}, {weights({}), weights({}), weights({}), input({2})});
      },
      {"growth_interval is 0"});
  expect_bad_input([&] { graph_.add(op::MovingAverage{.decay = 2}, {w, input({3})}); }, {"decay is 2"});
  expect_bad_input([&] { graph_.add(op::MovingAverage{}, {w, input({4})}); }, {"value has shape 4, expected 3"});
  expect_bad_input(
      [&] {
        graph_.add(op::MovingAverage{.scales = {1, 1}}, {w, input({3})});
      },
      {"for each of 2 scales; got 2 inputs"});
  const Tensor update = graph_.add(op::Assign{}, {w, input({3})}, "set");
  expect_bad_input([&] { relu(update); }, {"node 'set' (assign) has no output 0", "only be fetched"});
}

TEST_F(BuildingErrors, TensorsThatAreNotOfThisGraph) {
  Graph other;
  const Tensor foreign = placeholder(other, {2});
  expect_bad_input([&] { input({2}) + foreign; }, {"node 'add' (binary", "input 1 belongs to another graph"});
  expect_bad_input([&] { input({2}) + Tensor{}; }, {"node 'add' (binary", "empty tensor"});
  expect_bad_input([&] { relu(Tensor{}); }, {"empty tensor"});
}

TEST_F(BuildingErrors, AFailedNodeLeavesTheGraphAsItWas) {
  const Tensor src = input({2, 3});
  const std::size_t before = graph_.nodes().size();
  expect_bad_input([&] { reshape(src, {5}, "view"); }, {"node 'view'"});
  EXPECT_EQ(graph_.nodes().size(), before);
  EXPECT_EQ(graph_.node(reshape(src, {6}, "view")).name, "view");
}

}  // namespace
}  // namespace trireme
