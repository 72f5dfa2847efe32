// A network of a few kilobytes with every operation that the networks have, and values made by whole numbers, so that
// they are the same on every machine. Its ONNX file is stored beside this (small.onnx), with what ONNX Runtime makes of
// it (small_logits.json). Used by the tests of ONNX files and by the program that writes that file.
#pragma once

#include "trireme/models/layers.hpp"
#include "trireme/onnx/model_file.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::testkit {

struct SmallNetwork {
  explicit SmallNetwork(std::int64_t batch = 1) {
    images = placeholder(graph, {batch, 2, 8, 8}, "images");
    LayerBuilder layers(graph, {.training = false});
    Tensor x = layers.convolution(images, {.channels = 4, .kernel = {3, 3}, .stride = 2});  // one cell of padding
    x = lrn(x, {.size = 3, .alpha = 0.5f, .beta = 0.75f, .k = 2.0f}, "lrn");
    layers.use_batch_norm({.epsilon = 0.001f, .gamma = true});
    x = layers.convolution(x, {.channels = 4, .kernel = {1, 3}});
    layers.use_batch_norm({.epsilon = 0.001f, .gamma = false});
    const Tensor wide = layers.convolution(x, {.channels = 12, .relu = false});
    std::vector<Tensor> pools;
    for (const auto kind : {op::PoolKind::max, op::PoolKind::average_inside, op::PoolKind::average_include_padding}) {
      pools.push_back(layers.pool(x, {.kind = kind, .kernel = 2, .stride = 1, .padding = Padding::same}));
    }
    x = relu(binary(op::BinaryKind::add, concat(pools, 1, "concat"), wide, "add"), "relu");
    x = layers.pool(pad(x, {0, 1, 0, 0}, {0, 2, 0, 0}, 0, "pad"), {.kernel = 2, .stride = 2});
    const Tensor hidden = layers.fully_connected(x, 6);
    logits = binary(op::BinaryKind::add, layers.fully_connected(hidden, 5, false, "from_hidden"),
                    layers.fully_connected(layers.spatial_mean(x), 5, false, "from_mean"), "sum");
  }

  // Eighths from -5 to 5; variances from 3 on.
  void set_values(VariableStore& store) const {
    for (const NodeId id : store.all()) {
      const Node& variable = store.node(id);
      HostTensor value(variable.outputs[0]);
      const int offset = variable.name.ends_with("variance") ? 3 : -5;
      for (std::size_t i = 0; i < value.f32().size(); ++i) {
        value.f32()[i] = static_cast<float>(static_cast<int>((i * 7 + static_cast<std::size_t>(id)) % 11) + offset) / 8;
      }
      store.set(id, value);
    }
  }

  // From -1 to 1.
  HostTensor sample_images() const {
    HostTensor value(images.type());
    for (std::size_t i = 0; i < value.f32().size(); ++i) {
      value.f32()[i] = static_cast<float>(static_cast<int>(i * 37 % 129) - 64) / 64;
    }
    return value;
  }

  Graph graph;
  Tensor images, logits;
};

}  // namespace trireme::testkit
