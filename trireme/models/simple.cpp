// Small networks: one for testing a setup, two for handwritten digits.
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

Tensor digit_convolutions(LayerBuilder& layers, Tensor x) {
  for (const std::int64_t channels : {32, 64}) {
    x = layers.convolution(x, {.channels = channels, .kernel = {5, 5}});
    x = layers.pool(x, {.kernel = 2, .stride = 2});
  }
  return x;
}

}  // namespace

Tensor trivial(LayerBuilder& layers, Tensor images) {
  return layers.fully_connected(layers.fully_connected(images, 1), 4096);
}

Tensor lenet(LayerBuilder& layers, Tensor images) {
  return layers.fully_connected(digit_convolutions(layers, images), 512);
}

Tensor mnist(LayerBuilder& layers, Tensor images) {
  return layers.dropout(layers.fully_connected(digit_convolutions(layers, images), 1024));
}

}  // namespace trireme::networks
