// Inception v3, with batch norm without gamma after every convolution. Modules have their usual letters: A at 35x35, B
// reduces to 17x17, C, D reduces to 8x8, E.
#include "trireme/models/branches.hpp"
#include "trireme/models/networks.hpp"

namespace trireme::networks {
namespace {

using op::PoolKind;

std::vector<Branch> module_a(std::int64_t pool_channels) {
  return {
      branch({conv(64)}),
      branch({conv(48), conv(64, {5, 5})}),
      branch({conv(64), conv(96, {3, 3}), conv(96, {3, 3})}),
      branch({same_pool(PoolKind::average_inside, 3), conv(pool_channels)}),
  };
}

std::vector<Branch> grid_reduction() {
  return {
      branch({conv_valid(384, {3, 3}, 2)}),
      branch({conv(64), conv(96, {3, 3}), conv_valid(96, {3, 3}, 2)}),
      branch({valid_pool(PoolKind::max, 3, 2)}),
  };
}

std::vector<Branch> module_c(std::int64_t n) {
  return {
      branch({conv(192)}),
      branch({conv(n), conv(n, {1, 7}), conv(192, {7, 1})}),
      branch({conv(n), conv(n, {7, 1}), conv(n, {1, 7}), conv(n, {7, 1}), conv(192, {1, 7})}),
      branch({same_pool(PoolKind::average_inside, 3), conv(192)}),
  };
}

std::vector<Branch> module_d() {
  return {
      branch({conv(192), conv_valid(320, {3, 3}, 2)}),
      branch({conv(192), conv(192, {1, 7}), conv(192, {7, 1}), conv_valid(192, {3, 3}, 2)}),
      branch({valid_pool(PoolKind::max, 3, 2)}),
  };
}

std::vector<Branch> module_e(PoolKind pool) {
  const std::vector<Layer> fork{conv(384, {1, 3}), conv(384, {3, 1})};
  return {
      branch({conv(320)}),
      branch({conv(384)}, fork),
      branch({conv(448), conv(384, {3, 3})}, fork),
      branch({same_pool(pool, 3), conv(192)}),
  };
}

Tensor auxiliary_features(LayerBuilder& layers, Tensor x) {
  const LayerBuilder::Scope scope(layers, "auxiliary");
  return add_layers(layers, x, {valid_pool(PoolKind::average_inside, 5, 3), conv(128), conv_valid(768, {5, 5})});
}

}  // namespace

Tensor inception3(LayerBuilder& layers, Tensor images) {
  layers.use_batch_norm({.decay = 0.999f, .epsilon = 0.001f, .gamma = false});
  const PoolConfig halve = valid_pool(PoolKind::max, 3, 2);
  Tensor x = add_layers(layers, images,
                        {conv_valid(32, {3, 3}, 2), conv_valid(32, {3, 3}), conv(64, {3, 3}), halve,
                         conv_valid(80, {1, 1}), conv_valid(192, {3, 3}), halve});
  x = add_module(layers, x, "mixed_a1", module_a(32));
  x = add_module(layers, x, "mixed_a2", module_a(64));
  x = add_module(layers, x, "mixed_a3", module_a(64));
  x = add_module(layers, x, "mixed_b", grid_reduction());
  x = add_module(layers, x, "mixed_c1", module_c(128));
  x = add_module(layers, x, "mixed_c2", module_c(160));
  x = add_module(layers, x, "mixed_c3", module_c(160));
  x = add_module(layers, x, "mixed_c4", module_c(192));
  if (layers.wants_auxiliary()) layers.set_auxiliary(auxiliary_features(layers, x));
  x = add_module(layers, x, "mixed_d", module_d());
  x = add_module(layers, x, "mixed_e1", module_e(PoolKind::average_inside));
  x = add_module(layers, x, "mixed_e2", module_e(PoolKind::max));
  return layers.pool(x, valid_pool(PoolKind::average_inside, 8, 1));
}

}  // namespace trireme::networks
