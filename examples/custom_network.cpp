// A user-defined network in the style of MobileNet, with all of Trireme's commands:
//
//   P=build/release/examples/custom_network
//   trireme data make --out digits --samples 12000 --validation-samples 2000
//   $P train --model mobile --data-dir digits --checkpoint-dir run          and eval --checkpoint run, export
//   $P bench --model mobile                                                 and sweep, tune, models, doctor
//   $P launch --workers 2 --ps 1 -- train --model mobile --data-dir digits
#include "trireme/trireme.hpp"

using namespace trireme;

namespace {

// A 1x1 convolution to more channels, a depthwise convolution, and a 1x1 convolution back.
Tensor block(LayerBuilder& layers, Tensor x, std::int64_t channels, std::int64_t stride) {
  const std::int64_t inner = 4 * x.shape()[1];
  Tensor y = layers.convolution(x, {.channels = inner, .activation = hard_swish});
  y = layers.convolution(
      y, {.channels = inner, .kernel = {3, 3}, .stride = stride, .groups = inner, .activation = hard_swish});
  y = layers.convolution(y, {.channels = channels, .relu = false});
  return x.shape() == y.shape() ? x + y : y;
}

Tensor mobile(LayerBuilder& layers, Tensor x) {
  layers.use_batch_norm({.decay = 0.9f});
  x = layers.convolution(x, {.channels = 16, .kernel = {3, 3}, .activation = hard_swish});
  x = block(layers, x, 24, 2);
  x = block(layers, x, 24, 1);
  x = block(layers, x, 40, 2);
  return layers.spatial_mean(x);
}

}  // namespace

int main(int argc, char** argv) {
  return command_line(argc, argv,
                      {{.name = "mobile",
                        .description = "three blocks of MobileNet's kind, for handwritten digits",
                        .image_size = 28,
                        .channels = 1,
                        .classes = 10,
                        .batch_size = 32,
                        .build = mobile}});
}
