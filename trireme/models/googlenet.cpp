// GoogLeNet (Inception v1) with biases, without auxiliary heads and dropout.
#include "trireme/models/branches.hpp"
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

using op::PoolKind;

// Output channels of the convolutions, named by branch: 1x1; 1x1 then 3x3; 1x1 then 5x5; pool then 1x1.
struct Widths {
  std::int64_t one, reduce3, three, reduce5, five, pool;
};

Tensor inception(LayerBuilder& layers, Tensor src, const std::string& name, const Widths& widths) {
  return add_module(layers, src, name,
                    {
                        branch({conv(widths.one)}),
                        branch({conv(widths.reduce3), conv(widths.three, {3, 3})}),
                        branch({conv(widths.reduce5), conv(widths.five, {5, 5})}),
                        branch({same_pool(PoolKind::max, 3), conv(widths.pool)}),
                    });
}

}  // namespace

Tensor googlenet(LayerBuilder& layers, Tensor images) {
  const PoolConfig halve = same_pool(PoolKind::max, 3, 2);
  Tensor x = layers.convolution(images, {.channels = 64, .kernel = {7, 7}, .stride = 2});
  x = add_layers(layers, x, {halve, conv(64), conv(192, {3, 3}), halve});

  x = inception(layers, x, "inception3a", {64, 96, 128, 16, 32, 32});
  x = inception(layers, x, "inception3b", {128, 128, 192, 32, 96, 64});
  x = layers.pool(x, halve);
  x = inception(layers, x, "inception4a", {192, 96, 208, 16, 48, 64});
  x = inception(layers, x, "inception4b", {160, 112, 224, 24, 64, 64});
  x = inception(layers, x, "inception4c", {128, 128, 256, 24, 64, 64});
  x = inception(layers, x, "inception4d", {112, 144, 288, 32, 64, 64});
  x = inception(layers, x, "inception4e", {256, 160, 320, 32, 128, 128});
  x = layers.pool(x, halve);
  x = inception(layers, x, "inception5a", {256, 160, 320, 32, 128, 128});
  x = inception(layers, x, "inception5b", {384, 192, 384, 48, 128, 128});
  return layers.pool(x, valid_pool(PoolKind::average_inside, 7, 1));
}

}  // namespace trireme::networks
