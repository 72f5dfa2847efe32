// The structure of what gradients() adds. Values are compared with finite differences in conformance/.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

using testkit::expect_bad_input;

class Gradients : public ::testing::Test {
 protected:
  Tensor input(Shape shape, std::string name = "") { return placeholder(graph_, std::move(shape), std::move(name)); }
  Tensor weights(Shape shape, std::string name = "w") {
    return variable(graph_, std::move(shape), op::Initializer::constant(0), std::move(name));
  }
  Tensor gradient_of(Tensor loss, Tensor target) { return gradients(graph_, loss, std::span(&target, 1)).front(); }

  template <typename Op>
  std::vector<const Node*> nodes_of() const {
    std::vector<const Node*> found;
    for (const Node& node : graph_.nodes()) {
      if (node.as<Op>() != nullptr) found.push_back(&node);
    }
    return found;
  }

  // Every rule must give each target a gradient of its own shape.
  void expect_shapes(Tensor result, const std::vector<Tensor>& targets) {
    const std::vector<Tensor> diffs = gradients(graph_, reduce_sum(result), targets);
    for (std::size_t i = 0; i < targets.size(); ++i) EXPECT_EQ(diffs[i].shape(), targets[i].shape());
  }

  Graph graph_;
};

TEST_F(Gradients, ImagesGetNoBackwardDataAndWeightsComeFirst) {
  const Tensor images = input({2, 3, 8, 8});
  const Tensor w1 = weights({4, 3, 3, 3}), b1 = weights({4}), w2 = weights({5, 4, 3, 3}), w3 = weights({6, 5, 4, 4});
  const Tensor hidden = relu(convolution_bias(images, w1, b1));
  const Tensor loss = reduce_sum(fully_connected(convolution(hidden, w2), w3));
  const std::vector<Tensor> diffs = gradients(graph_, loss, std::vector{w1, b1, w2, w3});
  const auto data = nodes_of<op::ConvolutionBackwardData>();
  const auto diff_weights = nodes_of<op::ConvolutionBackwardWeights>();
  ASSERT_EQ(data.size(), 1u);
  ASSERT_EQ(diff_weights.size(), 2u);
  EXPECT_LT(diff_weights[0]->id, data[0]->id) << "the weights' gradient can be sent while backward goes on";
  EXPECT_EQ(diffs[1].node, diffs[0].node) << "the bias comes from the same operation";
  EXPECT_EQ(diffs[1].output, 1);
}

TEST_F(Gradients, OnlyWhatIsNeededIsAdded) {
  const Tensor src = input({2, 3}), w = weights({4, 3}), b = weights({4});
  gradient_of(reduce_sum(fully_connected_bias(src, w, b)), b);
  EXPECT_TRUE(nodes_of<op::FullyConnectedBackwardWeights>().empty());
  EXPECT_TRUE(nodes_of<op::FullyConnectedBackwardData>().empty());
  EXPECT_EQ(nodes_of<op::BiasBackward>().size(), 1u);
}

TEST_F(Gradients, FrozenWeightsAreLeftOut) {
  const Tensor w = weights({4, 3, 1, 1}), frozen = weights({5, 4, 1, 1}, "frozen");
  gradient_of(reduce_sum(convolution(convolution(input({2, 3, 4, 4}), w), frozen)), w);
  EXPECT_EQ(nodes_of<op::ConvolutionBackwardWeights>().size(), 1u);
  EXPECT_EQ(nodes_of<op::ConvolutionBackwardData>().size(), 1u);
}

TEST_F(Gradients, FanOutAccumulates) {
  const Tensor w = weights({3});
  const Tensor shared = square(w);
  const Tensor diff = gradient_of(reduce_sum(relu(shared) + unary(op::UnaryKind::tanh, shared)), w);
  const auto backward = nodes_of<op::UnaryBackward>();
  ASSERT_EQ(backward.size(), 3u);
  const Node& square_backward = graph_.node(diff);
  EXPECT_EQ(square_backward.as<op::UnaryBackward>()->kind, op::UnaryKind::square);
  const Node& sum = graph_.node(square_backward.inputs[0]);
  ASSERT_NE(sum.as<op::Binary>(), nullptr);
  EXPECT_EQ(sum.as<op::Binary>()->kind, op::BinaryKind::add);
  EXPECT_EQ(sum.inputs.size(), 2u);
}

TEST_F(Gradients, OneInputUsedTwiceByANode) {
  const Tensor w = weights({3});
  const Tensor diff = gradient_of(reduce_sum(w * w), w);
  EXPECT_EQ(graph_.node(diff).as<op::Binary>()->kind, op::BinaryKind::add);
}

TEST_F(Gradients, NamesSayWhoseTheyAre) {
  const Tensor w = weights({4, 3, 1, 1});
  Tensor dst;
  {
    const Graph::Scope scope(graph_, "stage1");
    dst = convolution(input({2, 3, 4, 4}), w, {}, 1, "conv");
  }
  const Tensor diff = gradient_of(reduce_sum(dst), w);
  EXPECT_EQ(graph_.node(diff).name, "gradients/stage1/conv/convolution_backward_weights");
  EXPECT_EQ(graph_.node(input({1}, "after")).name, "after");
}

TEST_F(Gradients, OfTheLossItselfIsOne) {
  const Tensor loss = reduce_sum(weights({3}));
  const Node& seed = graph_.node(gradient_of(loss, loss));
  ASSERT_NE(seed.as<op::Constant>(), nullptr);
  EXPECT_EQ(seed.as<op::Constant>()->value.scalar(), 1.0f);
}

TEST_F(Gradients, OfAnIntermediateTensor) {
  const Tensor w = weights({3});
  const Tensor hidden = square(w);
  const Tensor diff = gradient_of(reduce_sum(hidden), hidden);
  EXPECT_EQ(diff.shape(), Shape{3});
  EXPECT_TRUE(nodes_of<op::UnaryBackward>().empty()) << "nothing below the target is differentiated";
}

TEST_F(Gradients, UnaryBackwardReadsWhatItSays) {
  const Tensor w = weights({3});
  const Tensor dst = relu(w);
  const Tensor diff = gradient_of(reduce_sum(dst), w);
  EXPECT_EQ(graph_.node(diff).inputs[1], dst);
  const Tensor other = gradient_of(reduce_sum(square(w)), w);
  EXPECT_EQ(graph_.node(other).inputs[1], w);
  const Tensor sum = reduce_sum(square(w + 1));
  EXPECT_EQ(graph_.node(gradient_of(sum, w)).as<op::UnaryBackward>()->kind, op::UnaryKind::square)
      << "an added number changes no gradient";
}

TEST_F(Gradients, DropoutUsesTheSameMask) {
  const Tensor w = weights({4, 3});
  gradient_of(reduce_sum(dropout(w, 0.25f)), w);
  const auto masks = nodes_of<op::Dropout>();
  ASSERT_EQ(masks.size(), 2u);
  EXPECT_EQ(masks[0]->as<op::Dropout>()->key, masks[1]->as<op::Dropout>()->key);
  EXPECT_EQ(masks[1]->as<op::Dropout>()->rate, 0.25f);
}

TEST_F(Gradients, MaxPoolBackwardReadsSrcAndDstAndAverageDoesNot) {
  const Tensor w = weights({1, 2, 4, 4});
  const op::Window window{.kernel = {2, 2}, .stride = {2, 2}};
  EXPECT_EQ(graph_.node(gradient_of(reduce_sum(max_pool(w, window)), w)).inputs.size(), 3u);
  EXPECT_EQ(graph_.node(gradient_of(reduce_sum(average_pool(w, window)), w)).inputs.size(), 1u);
}

TEST_F(Gradients, BatchNormGivesAllFromOneOperation) {
  const Tensor src = weights({4, 3, 2, 2}), gamma = weights({3}, "gamma"), beta = weights({3}, "beta");
  const Tensor dst = graph_.add(op::BatchNorm{}, {src, gamma, beta});
  const auto diffs = gradients(graph_, reduce_sum(dst), std::vector{src, gamma, beta});
  EXPECT_EQ(diffs[0].output, 0);
  EXPECT_EQ(diffs[1].output, 2);
  EXPECT_EQ(diffs[2].output, 1);
  EXPECT_EQ(nodes_of<op::BatchNormBackward>().size(), 1u);
}

TEST_F(Gradients, SplitFillsMissingPartsWithZeros) {
  const Tensor w = weights({2, 6});
  const std::vector<Tensor> parts = split(w, {1, 5});
  const Tensor diff = gradient_of(reduce_sum(parts[1]), w);
  const Node& joined = graph_.node(diff);
  ASSERT_NE(joined.as<op::Concat>(), nullptr);
  EXPECT_EQ(joined.inputs[0].shape(), (Shape{2, 1}));
  EXPECT_EQ(diff.shape(), w.shape());
}

TEST_F(Gradients, EveryRuleKeepsTheShapes) {
  const Tensor image = weights({2, 4, 5, 5}), matrix = weights({3, 4}), row = weights({4}), column = weights({3, 1});
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      const Tensor a = weights(ta ? Shape{4, 2} : Shape{2, 4}), b = weights(tb ? Shape{3, 4} : Shape{4, 3});
      expect_shapes(matmul(a, b, ta, tb), {a, b});
    }
  }
  using Binary = op::BinaryKind;
  for (const Binary kind :
       {Binary::add, Binary::subtract, Binary::multiply, Binary::divide, Binary::maximum, Binary::minimum}) {
    expect_shapes(binary(kind, matrix, row), {matrix, row});
    expect_shapes(binary(kind, column, row), {column, row});
  }
  expect_shapes(add_bias(image, row), {image, row});
  expect_shapes(lrn(image), {image});
  expect_shapes(unary(op::UnaryKind::negate, image), {image});
  expect_shapes(hard_swish(image), {image});
  expect_shapes(graph_.add(op::Broadcast{{2, 3, 4}, 0.5f}, {column}), {column});
  expect_shapes(concat({image, image}), {image});
  expect_shapes(pad(matrix, {1, 0}, {0, 2}), {matrix});
  expect_shapes(slice(matrix, {1, 0}, {1, 2}), {matrix});
  expect_shapes(flatten(image), {image});
  for (const auto kind : {op::ReduceKind::sum, op::ReduceKind::mean, op::ReduceKind::max}) {
    expect_shapes(reduce(kind, image, {1, 3}), {image});
    expect_shapes(reduce(kind, image, {0, 2}, true), {image});
  }
  expect_shapes(l2_loss(matrix, 0.5f), {matrix});
  expect_shapes(softmax(matrix), {matrix});
  const Tensor labels = placeholder(graph_, {3}, "labels", DataType::i32);
  expect_shapes(softmax_cross_entropy(matrix, labels), {matrix});
}

TEST_F(Gradients, BatchNormInferenceTreatsStatisticsAsConstants) {
  const Tensor src = weights({4, 3, 2, 2}), gamma = weights({3}), beta = weights({3}), mean = weights({3}, "mean");
  const Tensor variance = weights({3});
  expect_shapes(graph_.add(op::BatchNormInference{}, {src, gamma, beta, mean, variance}), {src, gamma, beta});
  expect_shapes(graph_.add(op::BatchNormInference{.gamma = false}, {src, beta, mean, variance}), {src, beta});
  const Tensor dst = graph_.add(op::BatchNormInference{}, {src, gamma, beta, mean, variance});
  expect_bad_input([&] { gradient_of(reduce_sum(dst), mean); }, {"does not depend on 'mean' in a differentiable way"});
}

TEST_F(Gradients, ATargetThatTheLossDoesNotUse) {
  const Tensor w = weights({3}), unused = weights({3}, "unused");
  const Tensor loss = reduce_sum(w, {}, false, "loss");
  const Tensor later = relu(w, "later");
  expect_bad_input(
      [&] {
        gradients(graph_, loss, std::vector{w, unused});
      },
      {"loss 'loss' does not depend on 'unused'", "leave it out"});
  expect_bad_input([&] { gradient_of(loss, later); }, {"does not depend on 'later'"});
}

TEST_F(Gradients, LossAndTargetsAreChecked) {
  const Tensor w = weights({3});
  expect_bad_input([&] { gradient_of(square(w, "sq"), w); }, {"loss 'sq' has shape 3", "scalar", "reduce_mean"});
  expect_bad_input([&] { gradient_of(Tensor{}, w); }, {"the loss is an empty tensor"});
  expect_bad_input([&] { gradient_of(reduce_sum(w), Tensor{}); }, {"a target is an empty tensor"});
  Graph other;
  const Tensor foreign = placeholder(other, {});
  expect_bad_input([&] { gradient_of(foreign, w); }, {"the loss belongs to another graph"});
}

TEST_F(Gradients, OperationsWithoutGradientAreNamed) {
  const Tensor w = weights({2, 3});
  const Tensor labels = placeholder(graph_, {2}, "labels", DataType::i32);
  expect_bad_input([&] { gradient_of(top_k_accuracy(w, labels, 1, "top1"), w); },
                   {"gradient of node 'top1' (top_k_accuracy)", "no gradient"});
  const Tensor same = binary(op::BinaryKind::equal, w, w, "same");
  expect_bad_input([&] { gradient_of(reduce_sum(same), w); }, {"gradient of node 'same' (binary)", "equal"});
}

TEST_F(Gradients, SecondDerivativesAreRefused) {
  const Tensor w = weights({3});
  const Tensor first = gradient_of(reduce_sum(unary(op::UnaryKind::exp, w)), w);
  expect_bad_input([&] { gradient_of(reduce_sum(first), w); },
                   {"(unary_backward)", "second derivatives are not supported"});
}

TEST_F(Gradients, StatisticsAndProbabilitiesCarryNone) {
  const Tensor w = weights({4, 3});
  const Tensor bn = graph_.add(op::BatchNorm{.gamma = false}, {w, weights({3})}, "bn");
  expect_bad_input([&] { gradient_of(reduce_sum(graph_.output(bn.node, 1)), w); }, {"'bn'", "mean or variance"});
  const Tensor labels = placeholder(graph_, {4}, "labels", DataType::i32);
  const Tensor losses = graph_.add(op::SoftmaxCrossEntropy{}, {w, labels}, "xent");
  expect_bad_input([&] { gradient_of(reduce_sum(graph_.output(losses.node, 1)), w); }, {"'xent'", "probabilities"});
}

TEST_F(Gradients, FusedOperationsAreRefused) {
  const Tensor w = weights({2, 3});
  const Tensor fused = graph_.add(op::Binary{.activation = op::Activation::relu}, {w, w}, "fused");
  expect_bad_input([&] { gradient_of(reduce_sum(fused), w); }, {"'fused'", "before fusing"});
}

}  // namespace
}  // namespace trireme
