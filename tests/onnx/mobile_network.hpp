// A network of a user's own, in the manner of MobileNetV3: depthwise convolutions, hard-swish, squeeze-and-excite, and
// a constant. Used by the tests of ONNX files and by the program that makes cases for ONNX Runtime.
#pragma once

#include "trireme/models/layers.hpp"

namespace trireme::testkit {

class MobileNetwork {
 public:
  explicit MobileNetwork(std::int64_t batch, bool training = false) : layers_(graph, {.training = training}) {
    images = placeholder(graph, {batch, 3, 16, 16}, "images");
    const std::vector<float> mean{0.2f, -0.1f, 0.3f};
    layers_.use_batch_norm({});
    Tensor x = (images - constant(graph, HostTensor({3, 1, 1}, mean), "mean")) * 1.5f;
    x = layers_.convolution(x, {.channels = 8, .kernel = {3, 3}, .stride = 2, .activation = hard_swish});
    x = x + block(x, {.channels = 20, .kernel = {3, 3}, .groups = 20, .activation = relu6}, 8);
    x = block(x, {.channels = 24, .kernel = {5, 5}, .stride = 2, .groups = 24, .activation = hard_swish}, 12);
    logits = layers_.fully_connected(layers_.spatial_mean(x), 5, false, "logits");
  }

  Graph graph;
  Tensor images, logits;

 private:
  Tensor block(Tensor src, const ConvolutionConfig& depthwise, std::int64_t channels) {
    Tensor x = layers_.convolution(src, {.channels = depthwise.channels, .activation = depthwise.activation});
    x = squeeze_and_excite(layers_.convolution(x, depthwise));
    return layers_.convolution(x, {.channels = channels, .relu = false});
  }

  Tensor squeeze_and_excite(Tensor src) {
    const Shape& shape = src.shape();
    const Tensor squeezed = layers_.fully_connected(layers_.spatial_mean(src), shape[1] / 4);
    const Tensor gates = hard_sigmoid(layers_.fully_connected(squeezed, shape[1], false));
    return src * reshape(gates, {shape[0], shape[1], 1, 1});
  }

  LayerBuilder layers_;
};

}  // namespace trireme::testkit
