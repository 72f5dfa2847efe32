// Linear regression, the first program of the CSCS report: fits y = w·x + b to samples of y = 3x + noise, one by one.
// Five epochs reach about w = 3 with twice the report's learning rate, and about 2.8 with its own.
#include <fmt/core.h>

#include <random>

#include "trireme/backend/registry.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"

using namespace trireme;

int main() {
  constexpr int kSamples = 10, kEpochs = 5;
  std::mt19937 random(1);
  std::normal_distribution<float> noise;
  std::vector<std::pair<float, float>> data;
  for (int i = 0; i < kSamples; ++i) data.emplace_back(i, 3.0f * static_cast<float>(i) + noise(random));

  // Build the graph: nothing is computed yet.
  Graph graph;
  const Tensor x = placeholder(graph, {}, "x");
  const Tensor y = placeholder(graph, {}, "y");
  const Tensor w = variable(graph, {}, op::Initializer::constant(0), "weight");
  const Tensor b = variable(graph, {}, op::Initializer::constant(0), "bias");
  const Tensor y_predicted = x * w + b;
  const Tensor loss = square(y - y_predicted, "loss");
  std::vector<Tensor> fetches = minimize(loss, optimizer_rule(op::OptimizerKind::sgd), 0.002f);
  fetches.push_back(loss);

  // Run it: each run trains on one sample and returns its loss.
  const auto backend = make_backend(default_backend());
  Session session(graph, *backend);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    float total_loss = 0;
    for (const auto& [x_in, y_in] : data) {
      const Feed feeds[] = {{x, x_in}, {y, y_in}};
      total_loss += session.run(fetches, feeds).back().scalar();
    }
    fmt::print("Epoch {}: {:.4f}\n", epoch, total_loss / kSamples);
  }
  fmt::print("w = {:.2f}, b = {:.2f}\n", session.value(w).scalar(), session.value(b).scalar());
}
