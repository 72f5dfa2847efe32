// Bottleneck ResNet for ImageNet: v1 (stride on the first 1x1), v1.5 (on the 3x3) and v2 (pre-activation).
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

constexpr BatchNormConfig kAfterConvolution{.decay = 0.9f, .epsilon = 1e-5f, .gamma = true};
constexpr BatchNormConfig kBeforeActivation{.decay = 0.999f, .epsilon = 0.001f, .gamma = false};

struct Bottleneck {
  std::int64_t middle = 64;
  std::int64_t stride = 1;
  std::int64_t channels() const { return 4 * middle; }
};

Tensor block_v1(LayerBuilder& layers, Tensor src, const Bottleneck& block, bool stride_on_3x3) {
  const std::int64_t first_stride = stride_on_3x3 ? 1 : block.stride;
  const std::int64_t second_stride = stride_on_3x3 ? block.stride : 1;
  Tensor shortcut = src;
  if (src.shape()[1] != block.channels()) {
    shortcut =
        layers.convolution(src, {.channels = block.channels(), .stride = block.stride, .relu = false}, "shortcut");
  }
  Tensor x = layers.convolution(src, {.channels = block.middle, .stride = first_stride});
  x = layers.convolution(
      x, {.channels = block.middle, .kernel = {3, 3}, .stride = second_stride, .padding = Padding::resnet});
  x = layers.convolution(x, {.channels = block.channels(), .relu = false});
  return relu(binary(op::BinaryKind::add, x, shortcut, "add"), "relu");
}

Tensor block_v2(LayerBuilder& layers, Tensor src, const Bottleneck& block) {
  const Tensor activated = relu(layers.batch_norm(src, kBeforeActivation, "preactivation"), "relu");
  Tensor shortcut = src;
  if (src.shape()[1] != block.channels()) {
    shortcut = layers.convolution(
        activated, {.channels = block.channels(), .stride = block.stride, .relu = false, .plain = true}, "shortcut");
  }
  Tensor x = layers.convolution(activated, {.channels = block.middle, .stride = block.stride});
  x = layers.convolution(x, {.channels = block.middle, .kernel = {3, 3}});
  x = layers.convolution(x, {.channels = block.channels(), .relu = false, .plain = true});
  return binary(op::BinaryKind::add, x, shortcut, "add");
}

}  // namespace

Tensor resnet(LayerBuilder& layers, Tensor images, const Four& depths, ResnetVersion version) {
  layers.use_batch_norm(kAfterConvolution);
  Tensor x = layers.convolution(images, {.channels = 64, .kernel = {7, 7}, .stride = 2, .padding = Padding::resnet});
  x = layers.pool(x, {.kernel = 3, .stride = 2, .padding = Padding::same});

  for (std::size_t stage = 0; stage < depths.size(); ++stage) {
    const LayerBuilder::Scope stage_scope(layers, "stage" + std::to_string(stage + 1));
    for (int i = 0; i < depths[stage]; ++i) {
      const LayerBuilder::Scope block_scope(layers, "block" + std::to_string(i + 1));
      const Bottleneck block{.middle = std::int64_t{64} << stage, .stride = stage > 0 && i == 0 ? 2 : 1};
      x = version == ResnetVersion::v2 ? block_v2(layers, x, block)
                                       : block_v1(layers, x, block, version == ResnetVersion::v1_5);
    }
  }

  if (version == ResnetVersion::v2) x = relu(layers.batch_norm(x, kBeforeActivation, "last_norm"), "relu");
  return layers.spatial_mean(x);
}

}  // namespace trireme::networks
