// VGG: stages of 3x3 convolutions, each with a pool after it, and two wide fully connected layers.
#include "trireme/models/networks.hpp"

namespace trireme::networks {

Tensor vgg(LayerBuilder& layers, Tensor images, const Five& depths) {
  constexpr std::array<std::int64_t, 5> kWidths{64, 128, 256, 512, 512};
  Tensor x = images;
  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const LayerBuilder::Scope scope(layers, "stage" + std::to_string(stage + 1));
    for (int i = 0; i < depths[stage]; ++i) {
      x = layers.convolution(x, {.channels = kWidths[stage], .kernel = {3, 3}});
    }
    x = layers.pool(x, {.kernel = 2, .stride = 2});
  }
  for (int i = 0; i < 2; ++i) x = layers.dropout(layers.fully_connected(x, 4096));
  return x;
}

}  // namespace trireme::networks
