// A training loop shared by several processes: every rank trains on its part of the batch, and together they compute
// what one process does with all of it. Lines marked >>> are the whole difference.
//
//   trireme launch --workers 2 --program build/release/examples/distributed
//   mpirun -np 2 build/release/examples/distributed
//   build/release/examples/distributed               (one process, same losses)
#include <fmt/core.h>

#include <algorithm>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/parallel/replicas.hpp"

using namespace trireme;

namespace {

constexpr std::int64_t kGlobalBatch = 48, kChannels = 3, kSize = 16, kClasses = 10;

Tensor network(Graph& graph, Tensor images) {
  LayerBuilder layers(graph);
  Tensor x = images;
  for (const std::int64_t channels : {16, 32}) {
    x = layers.convolution(x, {.channels = channels, .kernel = {3, 3}});
    x = layers.pool(x, {.kernel = 2, .stride = 2});
  }
  x = layers.fully_connected(x, 64);
  return layers.fully_connected(x, kClasses, false, "logits");
}

void train_network(comm::Communicator& workers) {
  parallel::Replicas replicas(workers);                                                                    // >>>
  if (kGlobalBatch % replicas.size() != 0) bad_input("{} images cannot be divided evenly", kGlobalBatch);  // >>>
  const std::int64_t batch = kGlobalBatch / replicas.size();               // >>> this rank's part of the batch
  const auto first = static_cast<std::uint64_t>(replicas.rank() * batch);  // >>> and its first image

  Graph graph;
  const Tensor images = placeholder(graph, {batch, kChannels, kSize, kSize}, "images");
  const Tensor labels = placeholder(graph, {batch}, "labels", DataType::i32);
  const Tensor loss = softmax_cross_entropy(network(graph, images), labels);
  std::vector<Tensor> fetches{loss};
  const std::vector<Tensor> updates = minimize(loss, optimizer_rule(op::OptimizerKind::momentum), 0.01f);
  fetches.insert(fetches.end(), updates.begin(), updates.end());

  const auto backend = make_backend(default_backend());
  SessionOptions options;
  replicas.configure(graph, options);  // >>> puts gradients where the others see them
  Session session(graph, *backend, options);
  Executable& step = session.prepare(fetches);
  replicas.attach(session, step);  // >>> distributes rank 0's initial values; gradients are averaged from now on
  const auto pixels = static_cast<std::uint64_t>(kChannels * kSize * kSize);
  fill_truncated_normal(step.input_f32(images), 0, 1, random_key(1, "images"), first * pixels);
  fill_uniform(step.input_i32(labels), kClasses, random_key(1, "labels"), first);

  for (int i = 1; i <= 40; ++i) {
    step.run();
    if (i % 10 != 0 && i != 1) continue;
    double mean = 0;  // >>> the loss over all images
    for (const float each : comm::all_gather_value(workers, step.output(0)[0])) mean += each;
    if (replicas.rank() == 0) fmt::print("step {:2}: loss {:.4f}\n", i, mean / replicas.size());
  }
}

}  // namespace

int main() {
  const auto world = comm::join_world();  // >>> mpirun, srun or `trireme launch` says who the others are
  train_network(world->communicator());
  world->leave();  // >>>
}
