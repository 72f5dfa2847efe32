// A network of one's own: a small convolutional one with batch norm, trained on one synthetic batch. After a few dozen
// steps it knows the batch by heart, so the loss falls from about ln(10) towards 0.
#include <fmt/core.h>

#include "trireme/backend/registry.hpp"
#include "trireme/base/random.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t kBatch = 32, kChannels = 3, kSize = 16, kClasses = 10;

Tensor network(Graph& graph, Tensor images) {
  LayerBuilder layers(graph);
  layers.use_batch_norm({.decay = 0.9f, .epsilon = 1e-5f});
  Tensor x = images;
  for (const std::int64_t channels : {16, 32}) {
    x = layers.convolution(x, {.channels = channels, .kernel = {3, 3}});
    x = layers.pool(x, {.kernel = 2, .stride = 2});
  }
  x = layers.fully_connected(x, 64);
  return layers.fully_connected(x, kClasses, false, "logits");
}

}  // namespace

int main() {
  Graph graph;
  const Tensor images = placeholder(graph, {kBatch, kChannels, kSize, kSize}, "images");
  const Tensor labels = placeholder(graph, {kBatch}, "labels", DataType::i32);
  const Tensor logits = network(graph, images);
  const Tensor loss = softmax_cross_entropy(logits, labels);
  const Tensor accuracy = top_k_accuracy(logits, labels);
  std::vector<Tensor> fetches{loss, accuracy};
  const std::vector<Tensor> train = minimize(loss, optimizer_rule(op::OptimizerKind::momentum), 0.01f);
  fetches.insert(fetches.end(), train.begin(), train.end());

  // Prepared once, the step runs without looking anything up; the batch is written in place.
  const auto backend = make_backend(default_backend());
  Session session(graph, *backend);
  Executable& step = session.prepare(fetches);
  fill_truncated_normal(step.input_f32(images), 0, 1, random_key(1, "images"));
  fill_uniform(step.input_i32(labels), kClasses, random_key(1, "labels"));

  float first = 0;
  for (int i = 1; i <= 40; ++i) {
    step.run();
    if (i == 1) first = step.output(0)[0];
    if (i % 10 == 0 || i == 1)
      fmt::print("step {:2}: loss {:.4f}, accuracy {:.2f}\n", i, step.output(0)[0], step.output(1)[0]);
  }
  fmt::print("loss: {:.4f} -> {:.4f}\n", first, step.output(0)[0]);
}
