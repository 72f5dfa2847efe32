// ResNets for CIFAR-10: three stages of blocks of two 3x3 convolutions, with parameter-free shortcuts; and Keras'
// version 2 (cifar10_resnet.py), which HyPar-Flow trains with up to some 5,000 layers.
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

// The source subsampled by the stride, padded with zero channels on both sides.
Tensor shortcut(LayerBuilder& layers, Tensor src, std::int64_t channels, std::int64_t stride) {
  if (stride > 1) src = layers.pool(src, {.kind = op::PoolKind::average_inside, .kernel = 1, .stride = stride});
  const std::int64_t missing = channels - src.shape()[1];
  if (missing == 0) return src;
  const std::int64_t before = missing / 2;
  return pad(src, {0, before, 0, 0}, {0, missing - before, 0, 0}, 0, "shortcut");
}

Tensor block(LayerBuilder& layers, Tensor src, std::int64_t channels, std::int64_t stride) {
  const Tensor skipped = shortcut(layers, src, channels, stride);
  Tensor x =
      layers.convolution(src, {.channels = channels, .kernel = {3, 3}, .stride = stride, .padding = Padding::resnet});
  x = layers.convolution(x, {.channels = channels, .kernel = {3, 3}, .relu = false});
  return relu(binary(op::BinaryKind::add, x, skipped, "add"), "relu");
}

constexpr BatchNormConfig kKeras{.decay = 0.99f, .epsilon = 1e-3f, .gamma = true};

Tensor activated(LayerBuilder& layers, Tensor src) { return relu(layers.batch_norm(src, kKeras), "relu"); }

}  // namespace

Tensor cifar_resnet(LayerBuilder& layers, Tensor images, int blocks_per_stage) {
  layers.use_batch_norm({.decay = 0.9f, .epsilon = 1e-5f, .gamma = true});
  Tensor x = layers.convolution(images, {.channels = 16, .kernel = {3, 3}});
  for (int stage = 0; stage < 3; ++stage) {
    const LayerBuilder::Scope stage_scope(layers, "stage" + std::to_string(stage + 1));
    for (int i = 0; i < blocks_per_stage; ++i) {
      const LayerBuilder::Scope block_scope(layers, "block" + std::to_string(i + 1));
      x = block(layers, x, std::int64_t{16} << stage, stage > 0 && i == 0 ? 2 : 1);
    }
  }
  return layers.spatial_mean(x);
}

// Convolutions have biases, as Keras' have by default.
Tensor keras_resnet_v2(LayerBuilder& layers, Tensor images, int blocks_per_stage) {
  Tensor x = activated(layers, layers.convolution(images, {.channels = 16, .kernel = {3, 3}, .relu = false}));
  for (int stage = 0; stage < 3; ++stage) {
    const LayerBuilder::Scope stage_scope(layers, "stage" + std::to_string(stage + 1));
    const std::int64_t middle = stage == 0 ? 16 : std::int64_t{32} << stage, channels = std::int64_t{64} << stage;
    for (int i = 0; i < blocks_per_stage; ++i) {
      const LayerBuilder::Scope block_scope(layers, "block" + std::to_string(i + 1));
      const bool is_first = i == 0;
      const std::int64_t stride = stage > 0 && is_first ? 2 : 1;
      Tensor y = stage == 0 && is_first ? x : activated(layers, x);
      y = layers.convolution(y, {.channels = middle, .stride = stride, .relu = false});
      y = layers.convolution(activated(layers, y), {.channels = middle, .kernel = {3, 3}, .relu = false});
      y = layers.convolution(activated(layers, y), {.channels = channels, .relu = false});
      if (is_first) x = layers.convolution(x, {.channels = channels, .stride = stride, .relu = false}, "shortcut");
      x = binary(op::BinaryKind::add, x, y, "add");
    }
  }
  return layers.spatial_mean(activated(layers, x));
}

}  // namespace trireme::networks
