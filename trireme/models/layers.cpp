#include "trireme/models/layers.hpp"

#include <algorithm>
#include <cmath>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

using op::Initializer;

void expect_image(const std::string& layer, const Shape& src) {
  if (src.rank() != 4) {
    bad_input("layer '{}': the source must be batch x channels x height x width, got {}", layer, to_string(src));
  }
}

void expect_positive(const std::string& layer, const char* what, std::int64_t value) {
  if (value <= 0) bad_input("layer '{}': {} must be at least 1, got {}", layer, what, value);
}

}  // namespace

op::Window make_window(op::Pair kernel, std::int64_t stride, Padding padding, const Shape& src) {
  op::Window window{.kernel = kernel, .stride = {stride, stride}};
  if (padding == Padding::same || (padding == Padding::resnet && stride == 1)) {
    return op::same_padding(window, src[2], src[3]);
  }
  if (padding == Padding::resnet) {
    window.pad_before = {(kernel[0] - 1) / 2, (kernel[1] - 1) / 2};
    window.pad_after = window.pad_before;
  }
  return window;
}

LayerBuilder::LayerBuilder(Graph& graph, LayerOptions options) : graph_(graph), options_(options) {}

Tensor LayerBuilder::convolution(Tensor src, const ConvolutionConfig& config, const std::string& name) {
  const std::string layer = layer_name(name, "conv");
  expect_image(layer, src.shape());
  expect_positive(layer, "channels", config.channels);
  expect_positive(layer, "the kernel's height", config.kernel[0]);
  expect_positive(layer, "the kernel's width", config.kernel[1]);
  expect_positive(layer, "the stride", config.stride);
  if (config.groups < 1 || src.shape()[1] % config.groups != 0 || config.channels % config.groups != 0) {
    bad_input("layer '{}': groups must divide the {} channels of the source and the {} of the result, got {}", layer,
              src.shape()[1], config.channels, config.groups);
  }
  const Graph::Scope scope(graph_, layer);

  const std::int64_t in = src.shape()[1] / config.groups;
  const auto [height, width] = config.kernel;
  const Tensor weights = variable(graph_, {config.channels, in, height, width},
                                  Initializer::variance_scaling(1.0f, in * height * width), "weights");
  op::Window window = make_window(config.kernel, config.stride, config.padding, src.shape());
  for (op::Pair* side : {&window.pad_before, &window.pad_after}) {
    for (std::int64_t& cells : *side) cells += config.border;
  }

  Tensor dst;
  if (config.plain || batch_norm_) {
    dst = trireme::convolution(src, weights, window, config.groups, "convolution");
    if (!config.plain) dst = normalize(dst, *batch_norm_);
  } else {
    const Tensor bias = variable(graph_, {config.channels}, Initializer::constant(0), "bias");
    dst = convolution_bias(src, weights, bias, window, config.groups, "convolution");
  }
  if (config.activation != nullptr) return config.activation(dst, "");
  return config.relu ? relu(dst, "relu") : dst;
}

Tensor LayerBuilder::pool(Tensor src, const PoolConfig& config) {
  const std::string layer = layer_name("", "pool");
  expect_image(layer, src.shape());
  expect_positive(layer, "the kernel", config.kernel);
  expect_positive(layer, "the stride", config.stride);
  const op::Window window = make_window({config.kernel, config.kernel}, config.stride, config.padding, src.shape());
  return graph_.add(op::Pool{config.kind, window}, {src}, layer);
}

Tensor LayerBuilder::spatial_mean(Tensor src) {
  expect_image("spatial_mean", src.shape());
  return reduce_mean(src, {2, 3}, false, "spatial_mean");
}

Tensor LayerBuilder::dropout(Tensor src, float rate) {
  if (!options_.training || !options_.dropout) return src;
  return trireme::dropout(src, rate, layer_name("", "dropout"));
}

Tensor LayerBuilder::fully_connected(Tensor src, std::int64_t outputs, bool relu, const std::string& name) {
  const std::string layer = layer_name(name, "fc");
  expect_positive(layer, "outputs", outputs);
  Shape weights_shape = src.shape();
  if (weights_shape.rank() < 2) {
    bad_input("layer '{}': the source must be batch x features, got {}", layer, to_string(weights_shape));
  }
  const Graph::Scope scope(graph_, layer);

  const double fan_in = static_cast<double>(weights_shape.elements()) / static_cast<double>(weights_shape[0]);
  weights_shape[0] = outputs;
  const auto stddev = static_cast<float>(std::sqrt((relu ? 2.0 : 1.0) / fan_in));
  const Tensor weights = variable(graph_, weights_shape, Initializer::truncated_normal(stddev), "weights");
  const Tensor bias = variable(graph_, {outputs}, Initializer::constant(0), "bias");
  const Tensor dst = fully_connected_bias(src, weights, bias, "fully_connected");
  return relu ? trireme::relu(dst, "relu") : dst;
}

Tensor LayerBuilder::batch_norm(Tensor src, const BatchNormConfig& config, const std::string& name) {
  const Graph::Scope scope(graph_, layer_name(name, "norm"));
  return normalize(src, config);
}

Tensor LayerBuilder::normalize(Tensor src, const BatchNormConfig& config) {
  const std::int64_t channels = src.shape()[1];
  std::vector<Tensor> inputs{src};
  if (config.gamma) inputs.push_back(variable(graph_, {channels}, Initializer::constant(1), "gamma"));
  inputs.push_back(variable(graph_, {channels}, Initializer::constant(0), "beta"));
  const Tensor mean = variable(graph_, {channels}, Initializer::constant(0), "running_mean", false);
  const Tensor variance = variable(graph_, {channels}, Initializer::constant(1), "running_variance", false);

  if (!options_.training) {
    inputs.insert(inputs.end(), {mean, variance});
    return graph_.add(op::BatchNormInference{.epsilon = config.epsilon, .gamma = config.gamma}, inputs, "batch_norm");
  }

  const Tensor dst = graph_.add(op::BatchNorm{.epsilon = config.epsilon, .gamma = config.gamma}, inputs, "batch_norm");
  // The batch's variance is biased; inference needs an estimate of the population's.
  const auto samples = static_cast<double>(src.shape().elements() / channels * options_.groups);
  const auto unbiased = static_cast<float>(samples / std::max(samples - 1, 1.0));
  graph_.side_updates.push_back(
      graph_.add(op::MovingAverage{.decay = config.decay}, {mean, graph_.output(dst.node, 1)}, "update_running_mean"));
  graph_.side_updates.push_back(graph_.add(op::MovingAverage{.decay = config.decay, .scales = {unbiased}},
                                           {variance, graph_.output(dst.node, 2)}, "update_running_variance"));
  return dst;
}

std::string LayerBuilder::layer_name(const std::string& name, const std::string& kind) {
  return name.empty() ? kind + std::to_string(++counts_[kind]) : name;
}

LayerBuilder::Scope::Scope(LayerBuilder& layers, const std::string& name)
    : layers_(layers), graph_scope_(layers.graph_, name) {
  outer_counts_.swap(layers_.counts_);
}

LayerBuilder::Scope::~Scope() { layers_.counts_.swap(outer_counts_); }

}  // namespace trireme
