// Training with recomputation does what training without it does.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "trireme/backend/registry.hpp"
#include "trireme/base/random.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {
namespace {

constexpr int kSteps = 3;
constexpr std::int64_t kClasses = 5;

struct Network {
  std::string name;
  bool exact;                                          // what runs again gives the same bits
  std::function<Tensor(LayerBuilder&, Tensor)> build;  // images to logits
};

Tensor plain(LayerBuilder& layers, Tensor x) {
  for (int i = 0; i < 3; ++i) {
    x = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
    x = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
    x = layers.pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same});
  }
  return layers.fully_connected(layers.dropout(layers.fully_connected(x, 16)), kClasses, false);
}

Tensor residual(LayerBuilder& layers, Tensor x) {
  layers.use_batch_norm({});
  x = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
  for (int i = 0; i < 4; ++i) {
    const Tensor inner = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
    x = relu(layers.convolution(inner, {.channels = 8, .kernel = {3, 3}, .relu = false}) + x);
  }
  return layers.fully_connected(layers.spatial_mean(x), kClasses, false);
}

Tensor branches(LayerBuilder& layers, Tensor x) {
  x = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
  x = lrn(layers.pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same}));
  for (int i = 0; i < 3; ++i) {
    const Tensor one = layers.convolution(x, {.channels = 4});
    const Tensor three = layers.convolution(layers.convolution(x, {.channels = 4}), {.channels = 8, .kernel = {3, 3}});
    const Tensor pooled =
        layers.convolution(layers.pool(x, {.kernel = 3, .stride = 1, .padding = Padding::same}), {.channels = 4});
    x = layers.dropout(concat({one, three, pooled}), 0.2f);
  }
  return layers.fully_connected(layers.spatial_mean(lrn(x)), kClasses, false);
}

const std::vector<Network>& networks() {
  static const std::vector<Network> all{
      {"plain", true, plain}, {"residual", true, residual}, {"branches", true, branches}};
  return all;
}

struct Trained {
  std::vector<float> losses;
  std::vector<std::vector<float>> variables;
  std::int64_t planned_bytes = 0;
  int copies = 0;
};

Trained train(const Network& network, const Backend& backend, Recompute recompute, int inter_threads = 1) {
  Graph graph;
  const Tensor images = placeholder(graph, {2, 3, 12, 12}, "images");
  const Tensor labels = placeholder(graph, {2}, "labels", DataType::i32);
  LayerBuilder layers(graph);
  const Tensor loss = softmax_cross_entropy(network.build(layers, images), labels);
  std::vector<Tensor> fetches = minimize(loss, optimizer_rule(op::OptimizerKind::momentum), 0.05f);
  fetches.insert(fetches.begin(), loss);

  SessionOptions options;
  options.compile.recompute = recompute;
  options.compile.inter_threads = inter_threads;
  Session session(graph, backend, options);
  HostTensor values({DataType::f32, images.shape()}), classes({DataType::i32, labels.shape()});
  fill_uniform(classes.i32(), static_cast<std::int32_t>(kClasses - 1), random_key(1, "labels"));
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    fill_truncated_normal(values.f32(), 0, 1, random_key(static_cast<std::uint64_t>(step), "images"));
    const std::vector<Feed> feeds{{images, values}, {labels, classes}};
    trained.losses.push_back(session.run(fetches, feeds)[0].scalar());
  }
  for (const NodeId id : graph.variables()) {
    const HostTensor value = session.value(graph.output(id));
    trained.variables.emplace_back(value.f32().begin(), value.f32().end());
  }
  const Program& program = session.prepare(fetches).program();
  trained.planned_bytes = program.memory.planned_bytes;
  trained.copies = program.recomputation.nodes;
  return trained;
}

void expect_same(const std::vector<float>& a, const std::vector<float>& b, bool exact) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (exact) {
      ASSERT_EQ(a[i], b[i]) << "at " << i;
    } else {
      ASSERT_NEAR(a[i], b[i], 1e-5 * std::max(1.0f, std::abs(a[i]))) << "at " << i;
    }
  }
}

void expect_same(const Trained& a, const Trained& b, bool exact) {
  expect_same(a.losses, b.losses, exact);
  ASSERT_EQ(a.variables.size(), b.variables.size());
  for (std::size_t i = 0; i < a.variables.size(); ++i) expect_same(a.variables[i], b.variables[i], exact);
}

class RecomputeTraining : public testing::TestWithParam<std::tuple<std::string, std::size_t>> {
 protected:
  std::shared_ptr<Backend> backend = make_backend(std::get<0>(GetParam()));
  const Network& network = networks()[std::get<1>(GetParam())];
};

TEST_P(RecomputeTraining, HasTheSameLossesAndVariablesInLessMemory) {
  const Trained none = train(network, *backend, Recompute::none);
  EXPECT_EQ(none.copies, 0);
  EXPECT_NE(none.losses[0], none.losses[2]) << "nothing is trained";
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const Trained again = train(network, *backend, how);
    EXPECT_GT(again.copies, 0);
    EXPECT_LT(again.planned_bytes, none.planned_bytes);
    expect_same(none, again, network.exact);
  }
}

TEST_P(RecomputeTraining, HoldsWithOperationsAtTheSameTime) {
  const Trained alone = train(network, *backend, Recompute::full);
  expect_same(alone, train(network, *backend, Recompute::full, 2), true);
}

INSTANTIATE_TEST_SUITE_P(Backends, RecomputeTraining,
                         testing::Combine(testing::ValuesIn(backend_names()), testing::Range<std::size_t>(0, 3)),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" + networks()[std::get<1>(test.param)].name;
                         });

}  // namespace
}  // namespace trireme
