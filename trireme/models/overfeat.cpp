// OverFeat, the fast variant.
#include "trireme/models/networks.hpp"

namespace trireme::networks {

Tensor overfeat(LayerBuilder& layers, Tensor images) {
  const PoolConfig pool{.kernel = 2, .stride = 2};
  Tensor x = layers.convolution(images, {.channels = 96, .kernel = {11, 11}, .stride = 4, .padding = Padding::valid});
  x = layers.pool(x, pool);
  x = layers.convolution(x, {.channels = 256, .kernel = {5, 5}, .padding = Padding::valid});
  x = layers.pool(x, pool);
  for (const std::int64_t channels : {512, 1024, 1024}) {
    x = layers.convolution(x, {.channels = channels, .kernel = {3, 3}});
  }
  x = layers.pool(x, pool);
  for (const std::int64_t outputs : {3072, 4096}) x = layers.dropout(layers.fully_connected(x, outputs));
  return x;
}

}  // namespace trireme::networks
