// AlexNet as usually benchmarked: no groups, and local response normalization only in the small one for CIFAR-10.
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

constexpr PoolConfig kPool{.kernel = 3, .stride = 2};

// Shared by the two large ones, after the first convolution.
Tensor after_first(LayerBuilder& layers, Tensor x, std::int64_t conv4_channels) {
  x = layers.pool(x, kPool);
  x = layers.convolution(x, {.channels = 192, .kernel = {5, 5}});
  x = layers.pool(x, kPool);
  for (const std::int64_t channels : {std::int64_t{384}, conv4_channels, std::int64_t{256}}) {
    x = layers.convolution(x, {.channels = channels, .kernel = {3, 3}});
  }
  x = layers.pool(x, kPool);
  for (int i = 0; i < 2; ++i) x = layers.dropout(layers.fully_connected(x, 4096));
  return x;
}

}  // namespace

Tensor alexnet(LayerBuilder& layers, Tensor images) {
  const Tensor x =
      layers.convolution(images, {.channels = 64, .kernel = {11, 11}, .stride = 4, .padding = Padding::valid});
  return after_first(layers, x, 384);
}

Tensor alexnet_owt(LayerBuilder& layers, Tensor images) {
  const Tensor x = layers.convolution(
      images, {.channels = 64, .kernel = {11, 11}, .stride = 4, .padding = Padding::valid, .border = 2});
  return after_first(layers, x, 256);
}

Tensor alexnet_cifar(LayerBuilder& layers, Tensor images) {
  // Four neighbors on each side, 1 + 0.001/9 * sum of squares: op::Lrn itself divides alpha by the size.
  const op::Lrn response{.size = 9, .alpha = 0.001f, .beta = 0.75f, .k = 1.0f};
  const PoolConfig pool{.kernel = 3, .stride = 2, .padding = Padding::same};
  const ConvolutionConfig convolution{.channels = 64, .kernel = {5, 5}};

  Tensor x = layers.convolution(images, convolution);
  x = lrn(layers.pool(x, pool), response, "lrn1");
  x = layers.convolution(x, convolution);
  x = layers.pool(lrn(x, response, "lrn2"), pool);
  x = layers.fully_connected(x, 384);
  return layers.fully_connected(x, 192);
}

}  // namespace trireme::networks
