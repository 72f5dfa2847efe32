// A small network in training, for tests of what happens around a step: fixed samples, any backend, any optimizer.
#pragma once

#include <memory>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/base/random.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme::testkit {

struct SmallTraining {
  explicit SmallTraining(std::int64_t batch, const op::OptimizerRule& rule, std::uint64_t seed = 7,
                         std::int64_t classes = 5, std::shared_ptr<Backend> on = make_backend(backend_names().front()))
      : backend(std::move(on)) {
    images = placeholder(graph, {batch, 2, 8, 8}, "images");
    labels = placeholder(graph, {batch}, "labels", DataType::i32);
    LayerBuilder layers(graph);
    Tensor x = layers.convolution(images, {.channels = 8, .kernel = {3, 3}});
    x = layers.pool(x, {.kernel = 2, .stride = 2});
    const Tensor loss = softmax_cross_entropy(layers.fully_connected(x, classes, false, "logits"), labels);
    fetches = {loss};
    for (const Tensor& update : minimize(loss, rule, 0.05f)) fetches.push_back(update);
    SessionOptions options{.seed = seed};
    options.compile.update_bytes = 1 << 10;  // several buckets
    session = std::make_unique<Session>(graph, *backend, options);
    step = &session->prepare(fetches);
  }

  // The samples from this one on.
  void feed(std::int64_t first) {
    const std::int64_t batch = images.shape()[0], pixels = images.shape().elements() / batch;
    fill_truncated_normal(step->input_f32(images), 0, 1, random_key(3, "images"),
                          static_cast<std::uint64_t>(first * pixels));
    for (std::int64_t i = 0; i < batch; ++i) {
      step->input_i32(labels)[i] = static_cast<std::int32_t>((first + i) % 5);
    }
    step->sample_offset = first;
  }
  void run(std::int64_t first) {
    feed(first);
    step->run();
  }
  VariableStore& store() { return session->variables(); }
  // Values of all variables, one after the other.
  std::vector<float> values() {
    std::vector<float> all;
    for (const NodeId id : store().all()) {
      const HostTensor value = store().get(id);
      all.insert(all.end(), value.f32().begin(), value.f32().end());
    }
    return all;
  }

  Graph graph;
  Tensor images, labels;
  std::vector<Tensor> fetches;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Session> session;
  Executable* step = nullptr;
};

}  // namespace trireme::testkit
