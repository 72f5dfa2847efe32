// Inception v4, with batch norm without gamma after every convolution.
#include "trireme/models/branches.hpp"
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

using op::PoolKind;

constexpr PoolConfig kHalve = valid_pool(PoolKind::max, 3, 2);
constexpr PoolConfig kSmooth = same_pool(PoolKind::average_inside, 3);

// 299x299x3 to 35x35x384.
Tensor stem(LayerBuilder& layers, Tensor images) {
  const LayerBuilder::Scope scope(layers, "stem");
  Tensor x = add_layers(layers, images, {conv_valid(32, {3, 3}, 2), conv_valid(32, {3, 3}), conv(64, {3, 3})});
  x = add_module(layers, x, "mixed1", {branch({kHalve}), branch({conv_valid(96, {3, 3}, 2)})});
  x = add_module(layers, x, "mixed2",
                 {branch({conv(64), conv_valid(96, {3, 3})}),
                  branch({conv(64), conv(64, {7, 1}), conv(64, {1, 7}), conv_valid(96, {3, 3})})});
  return add_module(layers, x, "mixed3", {branch({conv_valid(192, {3, 3}, 2)}), branch({kHalve})});
}

std::vector<Branch> module_a() {
  return {
      branch({kSmooth, conv(96)}),
      branch({conv(96)}),
      branch({conv(64), conv(96, {3, 3})}),
      branch({conv(64), conv(96, {3, 3}), conv(96, {3, 3})}),
  };
}

std::vector<Branch> reduction_a() {
  return {
      branch({kHalve}),
      branch({conv_valid(384, {3, 3}, 2)}),
      branch({conv(192), conv(224, {3, 3}), conv_valid(256, {3, 3}, 2)}),
  };
}

std::vector<Branch> module_b() {
  return {
      branch({kSmooth, conv(128)}),
      branch({conv(384)}),
      branch({conv(192), conv(224, {1, 7}), conv(256, {7, 1})}),
      branch({conv(192), conv(192, {1, 7}), conv(224, {7, 1}), conv(224, {1, 7}), conv(256, {7, 1})}),
  };
}

std::vector<Branch> reduction_b() {
  return {
      branch({kHalve}),
      branch({conv(192), conv_valid(192, {3, 3}, 2)}),
      branch({conv(256), conv(256, {1, 7}), conv(320, {7, 1}), conv_valid(320, {3, 3}, 2)}),
  };
}

std::vector<Branch> module_c() {
  return {
      branch({kSmooth, conv(256)}),
      branch({conv(256)}),
      branch({conv(384)}, {conv(256, {1, 3}), conv(256, {3, 1})}),
      branch({conv(384), conv(448, {1, 3}), conv(512, {3, 1})}, {conv(256, {3, 1}), conv(256, {1, 3})}),
  };
}

Tensor repeat(LayerBuilder& layers, Tensor x, const std::string& name, const std::vector<Branch>& module, int times) {
  for (int i = 1; i <= times; ++i) x = add_module(layers, x, name + std::to_string(i), module);
  return x;
}

}  // namespace

Tensor inception4(LayerBuilder& layers, Tensor images) {
  layers.use_batch_norm({.decay = 0.999f, .epsilon = 0.001f, .gamma = false});
  Tensor x = stem(layers, images);
  x = repeat(layers, x, "mixed_a", module_a(), 4);
  x = add_module(layers, x, "reduction_a", reduction_a());
  x = repeat(layers, x, "mixed_b", module_b(), 7);
  x = add_module(layers, x, "reduction_b", reduction_b());
  x = repeat(layers, x, "mixed_c", module_c(), 3);
  return layers.dropout(layers.spatial_mean(x), 0.2f);
}

}  // namespace trireme::networks
