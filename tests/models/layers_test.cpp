// LayerBuilder: windows, initial values, batch norm's statistics, names and errors.
#include "trireme/models/layers.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "trireme/base/error.hpp"
#include "trireme/models/branches.hpp"

namespace trireme {
namespace {

const op::Variable& variable_named(const Graph& graph, const std::string& name) {
  for (const NodeId id : graph.variables()) {
    if (graph.node(id).name == name) return *graph.node(id).as<op::Variable>();
  }
  throw std::out_of_range("no variable " + name);
}

TEST(MakeWindow, SamePutsTheOddCellAfter) {
  const op::Window window = make_window({7, 7}, 2, Padding::same, {1, 3, 224, 224});
  EXPECT_EQ(window.pad_before, (op::Pair{2, 2}));
  EXPECT_EQ(window.pad_after, (op::Pair{3, 3}));
  const op::Window pool = make_window({3, 3}, 2, Padding::same, {1, 64, 112, 112});
  EXPECT_EQ(pool.pad_before, (op::Pair{0, 0}));
  EXPECT_EQ(pool.pad_after, (op::Pair{1, 1}));
}

TEST(MakeWindow, ResnetPadsBothSidesAlikeWhenStriding) {
  const op::Window window = make_window({7, 7}, 2, Padding::resnet, {1, 3, 224, 224});
  EXPECT_EQ(window.pad_before, (op::Pair{3, 3}));
  EXPECT_EQ(window.pad_after, (op::Pair{3, 3}));
  EXPECT_EQ(make_window({3, 3}, 1, Padding::resnet, {1, 3, 9, 9}), make_window({3, 3}, 1, Padding::same, {1, 3, 9, 9}));
}

TEST(MakeWindow, ValidPadsNothing) {
  const op::Window window = make_window({1, 7}, 1, Padding::valid, {1, 3, 17, 17});
  EXPECT_EQ(window.pad_before, (op::Pair{0, 0}));
  EXPECT_EQ(window.pad_after, (op::Pair{0, 0}));
}

TEST(Convolution, HasBiasOrBatchNormOrNeither) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {2, 3, 8, 8});
  layers.convolution(images, {.channels = 4, .kernel = {3, 1}});
  layers.use_batch_norm({.gamma = false});
  layers.convolution(images, {.channels = 4});
  layers.convolution(images, {.channels = 4, .plain = true});
  std::vector<std::string> names;
  for (const NodeId id : graph.variables()) names.push_back(graph.node(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1/weights", "conv1/bias", "conv2/weights", "conv2/beta",
                                             "conv2/running_mean", "conv2/running_variance", "conv3/weights"}));
  EXPECT_EQ(variable_named(graph, "conv1/weights").shape, (Shape{4, 3, 3, 1}));
}

TEST(Convolution, BorderAddsToEverySide) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {1, 3, 224, 224});
  const Tensor x = layers.convolution(
      images, {.channels = 64, .kernel = {11, 11}, .stride = 4, .padding = Padding::valid, .border = 2});
  EXPECT_EQ(x.shape(), (Shape{1, 64, 55, 55}));
}

TEST(Convolution, GroupsDivideTheInputsOfTheWeights) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {1, 6, 8, 8});
  const Tensor x = layers.convolution(images, {.channels = 12, .kernel = {3, 3}, .groups = 6});
  EXPECT_EQ(x.shape(), (Shape{1, 12, 8, 8}));
  const op::Variable& weights = variable_named(graph, "conv1/weights");
  EXPECT_EQ(weights.shape, (Shape{12, 1, 3, 3}));
  EXPECT_EQ(weights.initializer.stddev, op::Initializer::variance_scaling(1, 9).stddev);
}

TEST(Convolution, ActivationTakesThePlaceOfRelu) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {1, 3, 8, 8});
  const auto last = [&](const ConvolutionConfig& config) {
    return graph.node(layers.convolution(images, config)).name;
  };
  EXPECT_EQ(last({.channels = 2}), "conv1/relu");
  EXPECT_EQ(last({.channels = 2, .relu = false}), "conv2/convolution");
  EXPECT_EQ(last({.channels = 2, .activation = relu6}), "conv3/relu6");
  EXPECT_EQ(last({.channels = 2, .activation = hard_swish}), "conv4/hard_swish");
  EXPECT_EQ(last({.channels = 2, .activation = [](Tensor x, std::string) { return x * x; }}), "conv5/multiply");
}

TEST(InitialValues, AreThoseOfTfCnnBenchmarks) {
  Graph graph;
  LayerBuilder layers(graph);
  Tensor x = layers.convolution(placeholder(graph, {2, 3, 8, 8}), {.channels = 10, .kernel = {5, 5}});
  x = layers.fully_connected(x, 20);
  layers.fully_connected(x, 5, false, "logits");

  // Truncation at two sigma narrows a normal distribution to 0.8796 of its deviation; variance scaling makes up for it.
  const op::Initializer convolution = variable_named(graph, "conv1/weights").initializer;
  EXPECT_EQ(convolution.kind, op::Initializer::Kind::truncated_normal);
  EXPECT_NEAR(convolution.stddev, std::sqrt(1.0 / (3 * 5 * 5)) / 0.87962566, 1e-6);
  const op::Variable& hidden = variable_named(graph, "fc1/weights");
  EXPECT_EQ(hidden.shape, (Shape{20, 10, 8, 8}));
  EXPECT_FLOAT_EQ(hidden.initializer.stddev, static_cast<float>(std::sqrt(2.0 / (10 * 8 * 8))));
  EXPECT_FLOAT_EQ(variable_named(graph, "logits/weights").initializer.stddev, static_cast<float>(std::sqrt(1.0 / 20)));
  for (const char* bias : {"conv1/bias", "fc1/bias", "logits/bias"}) {
    EXPECT_EQ(variable_named(graph, bias).initializer.kind, op::Initializer::Kind::constant);
    EXPECT_EQ(variable_named(graph, bias).initializer.mean, 0);
  }
}

TEST(BatchNorm, KeepsUnbiasedRunningStatistics) {
  Graph graph;
  LayerBuilder layers(graph);
  layers.batch_norm(placeholder(graph, {2, 3, 4, 4}), {.decay = 0.75f, .epsilon = 0.5f}, "norm");
  EXPECT_EQ(variable_named(graph, "norm/gamma").initializer.mean, 1);
  EXPECT_EQ(variable_named(graph, "norm/beta").initializer.mean, 0);
  EXPECT_EQ(variable_named(graph, "norm/running_mean").initializer.mean, 0);
  EXPECT_EQ(variable_named(graph, "norm/running_variance").initializer.mean, 1);
  EXPECT_FALSE(variable_named(graph, "norm/running_mean").trainable);
  EXPECT_FALSE(variable_named(graph, "norm/running_variance").trainable);

  ASSERT_EQ(graph.side_updates.size(), 2u);
  const Node& mean = graph.node(graph.side_updates[0]);
  const Node& variance = graph.node(graph.side_updates[1]);
  EXPECT_EQ(mean.as<op::MovingAverage>()->decay, 0.75f);
  EXPECT_EQ(mean.as<op::MovingAverage>()->scales[0], 1.0f);
  EXPECT_EQ(mean.inputs[1].output, 1);
  EXPECT_EQ(variance.as<op::MovingAverage>()->decay, 0.75f);
  EXPECT_FLOAT_EQ(variance.as<op::MovingAverage>()->scales[0], 32.0f / 31.0f);
  EXPECT_EQ(variance.inputs[1].output, 2);
  EXPECT_EQ(graph.node(mean.inputs[1]).as<op::BatchNorm>()->epsilon, 0.5f);
}

TEST(BatchNorm, OfOneValuePerChannelStaysFinite) {
  Graph graph;
  LayerBuilder layers(graph);
  layers.batch_norm(placeholder(graph, {1, 3, 1, 1}), {});
  EXPECT_EQ(graph.node(graph.side_updates[1]).as<op::MovingAverage>()->scales[0], 1.0f);
}

TEST(Scope, StartsCountingAgainAndGoesBack) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {1, 3, 8, 8});
  layers.convolution(images, {.channels = 1});
  {
    const LayerBuilder::Scope scope(layers, "stage1");
    layers.convolution(images, {.channels = 1});
  }
  layers.convolution(images, {.channels = 1});
  std::vector<std::string> names;
  for (const NodeId id : graph.variables()) names.push_back(graph.node(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"conv1/weights", "conv1/bias", "stage1/conv1/weights", "stage1/conv1/bias",
                                             "conv2/weights", "conv2/bias"}));
}

TEST(AddModule, ConcatenatesBranchesAndForks) {
  Graph graph;
  LayerBuilder layers(graph);
  const Tensor images = placeholder(graph, {1, 3, 8, 8});
  const Tensor x = add_module(layers, images, "mixed",
                              {branch({conv(4)}), branch({conv(5)}, {conv(6, {1, 3}), conv(7, {3, 1})}),
                               branch({same_pool(op::PoolKind::max, 3)})});
  EXPECT_EQ(x.shape(), (Shape{1, 4 + 6 + 7 + 3, 8, 8}));
  EXPECT_EQ(variable_named(graph, "mixed/branch2/conv3/weights").shape, (Shape{7, 5, 3, 1}));
}

std::string error_of(Tensor images, const ConvolutionConfig& config) {
  LayerBuilder layers(*images.graph);
  try {
    layers.convolution(images, config, "first");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "";
}

TEST(Errors, NameTheLayerAndTheValue) {
  Graph graph;
  const Tensor images = placeholder(graph, {1, 3, 8, 8});
  EXPECT_EQ(error_of(images, {}), "layer 'first': channels must be at least 1, got 0");
  EXPECT_EQ(error_of(images, {.channels = 1, .stride = 0}), "layer 'first': the stride must be at least 1, got 0");
  EXPECT_EQ(error_of(images, {.channels = 4, .groups = 2}),
            "layer 'first': groups must divide the 3 channels of the source and the 4 of the result, got 2");
  EXPECT_NE(error_of(images, {.channels = 4, .groups = 0}).find("got 0"), std::string::npos);
  EXPECT_NE(error_of(placeholder(graph, {1, 3}), {.channels = 1}).find("got 1x3"), std::string::npos);
  // A kernel larger than the image: the graph's own error, under the layer's name.
  EXPECT_NE(error_of(images, {.channels = 1, .kernel = {9, 9}, .padding = Padding::valid}).find("first/convolution"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme
