// ResNet for CIFAR-10: three stages of blocks of two 3x3 convolutions, with parameter-free shortcuts.
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

}  // namespace trireme::networks
