#include "trireme/runtime/batch_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {
namespace {

constexpr std::int64_t kBatch = 12;
constexpr int kSteps = 5;

struct Trained {
  std::vector<double> losses;
  std::vector<std::pair<std::string, HostTensor>> variables;
};

// Trains a network on one batch, split over this many groups, each with a thread of its own.
Trained train(const std::string& name, int groups, op::OptimizerKind optimizer) {
  const std::int64_t share = kBatch / groups;
  Graph graph;
  const Model model = build_model(graph, name, {.batch_size = share, .groups = groups, .num_classes = 5});
  std::vector<Tensor> fetches{model.loss};
  for (const Tensor& update : minimize(model.loss, optimizer_rule(optimizer), 0.01f)) fetches.push_back(update);
  const auto backend = make_backend("onednn");
  Session session(graph, *backend, {.seed = 7, .groups = groups});
  BatchSplit& split = session.prepare_split(fetches);

  std::vector<float> images(model.images.shape().elements() * groups);
  fill_truncated_normal(images, 0.0f, 1.0f, random_key(3, "images"));
  for (int index = 0; index < groups; ++index) {
    Executable& group = split.group(index);
    const std::span<float> input = group.input_f32(model.images);
    std::copy_n(images.begin() + index * std::ssize(input), input.size(), input.begin());
    for (std::int64_t i = 0; i < share; ++i) {
      group.input_i32(model.labels)[i] = static_cast<std::int32_t>((index * share + i) % 5);
    }
    group.sample_offset = index * share;
  }
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    split.run();
    trained.losses.push_back(split.mean_output(0));
  }
  for (const NodeId id : graph.variables()) {
    trained.variables.emplace_back(graph.node(id).name, session.variables().get(id));
  }
  EXPECT_EQ(session.variables().step, static_cast<std::uint64_t>(kSteps));
  return trained;
}

void expect_same(const Trained& actual, const Trained& expected, double tolerance) {
  for (int step = 0; step < kSteps; ++step) {
    const auto at = static_cast<std::size_t>(step);
    EXPECT_NEAR(actual.losses[at], expected.losses[at], tolerance * std::abs(expected.losses[at])) << "step " << step;
  }
  ASSERT_EQ(actual.variables.size(), expected.variables.size());
  for (std::size_t v = 0; v < actual.variables.size(); ++v) {
    const auto a = actual.variables[v].second.f32(), e = expected.variables[v].second.f32();
    double difference = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += std::pow(static_cast<double>(a[i]) - e[i], 2);
      size += std::pow(static_cast<double>(e[i]), 2);
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(size) + 1e-6) << actual.variables[v].first;
  }
}

bool has_onednn() {
  const auto names = backend_names();
  return std::find(names.begin(), names.end(), "onednn") != names.end();
}

struct Case {
  const char* model;  // mnist has dropout, resnet20 batch norm and residuals
  op::OptimizerKind optimizer;
  double tolerance;
};

class BatchSplitTest : public testing::TestWithParam<std::tuple<Case, int>> {};

TEST_P(BatchSplitTest, TrainsLikeTheWholeBatch) {
  if (!has_onednn()) GTEST_SKIP() << "needs oneDNN";
  const auto& [of, groups] = GetParam();
  expect_same(train(of.model, groups, of.optimizer), train(of.model, 1, of.optimizer), of.tolerance);
}

INSTANTIATE_TEST_SUITE_P(Networks, BatchSplitTest,
                         testing::Combine(testing::Values(Case{"mnist", op::OptimizerKind::momentum, 1e-4},
                                                          Case{"mnist", op::OptimizerKind::adam, 1e-2},
                                                          Case{"resnet20", op::OptimizerKind::momentum, 2e-3}),
                                          testing::Values(2, 3, 4)),
                         [](const auto& each) {
                           const Case& of = std::get<0>(each.param);
                           return std::string(of.model) + "_" + std::string(op::to_string(of.optimizer)) + "_" +
                                  std::to_string(std::get<1>(each.param));
                         });

TEST(BatchSplit, AFetchedVariableHasTheValueAfterTheUpdateInEveryGroup) {
  if (!has_onednn()) GTEST_SKIP() << "needs oneDNN";
  Graph graph;
  const Tensor x = placeholder(graph, {2, 4}, "x");
  const Tensor w = variable(graph, {3, 4}, op::Initializer::constant(1), "w");
  const Tensor loss = reduce_mean(fully_connected(x, w));
  std::vector<Tensor> fetches = minimize(loss, optimizer_rule(op::OptimizerKind::sgd), 0.5f);
  fetches.push_back(w);
  const auto backend = make_backend("onednn");
  Session session(graph, *backend, {.groups = 2});
  BatchSplit& split = session.prepare_split(fetches);
  for (int group = 0; group < 2; ++group) {
    for (float& value : split.group(group).input_f32(x)) value = static_cast<float>(group + 1);
  }
  split.run();
  const auto expected = session.value(w);
  for (int group = 0; group < 2; ++group) {
    const auto fetched = split.group(group).output(static_cast<int>(fetches.size()) - 1);
    ASSERT_EQ(fetched.size(), expected.f32().size());
    for (std::size_t i = 0; i < fetched.size(); ++i) EXPECT_EQ(fetched[i], expected.f32()[i]);
    EXPECT_NE(fetched[0], 1.0f);
  }
}

// Mean of what the only batch norm sees, kept with decay 0: group 0's images are all 1, group 1's all 3.
float running_mean(bool own_statistics) {
  Graph graph;
  const Tensor x = placeholder(graph, {4, 16, 2, 2}, "x");
  const Tensor gamma = variable(graph, {16}, op::Initializer::constant(1), "gamma");
  const Tensor beta = variable(graph, {16}, op::Initializer::constant(0), "beta");
  const Tensor mean = variable(graph, {16}, op::Initializer::constant(0), "mean", false);
  const Tensor y = graph.add(op::BatchNorm{}, {x, gamma, beta});
  const Tensor update = graph.add(op::MovingAverage{.decay = 0}, {mean, graph.output(y.node, 1)});
  const auto backend = make_backend("onednn");
  Session session(graph, *backend, {.groups = 2, .own_statistics = own_statistics});
  const std::vector<Tensor> fetches{y, update};
  BatchSplit& split = session.prepare_split(fetches);
  for (int group = 0; group < 2; ++group) {
    for (float& value : split.group(group).input_f32(x)) value = static_cast<float>(1 + 2 * group);
  }
  split.run();
  return session.value(mean).f32()[5];
}

TEST(BatchSplit, StatisticsAreOfAllImagesOrOfTheFirstGroups) {
  if (!has_onednn()) GTEST_SKIP() << "needs oneDNN";
  EXPECT_FLOAT_EQ(running_mean(false), 2);
  EXPECT_FLOAT_EQ(running_mean(true), 1);
}

TEST(BatchSplit, TheReferenceSaysThatItCannot) {
  Graph graph;
  const auto backend = make_backend("reference");
  EXPECT_THROW(Session(graph, *backend, {.groups = 2}), Error);
}

TEST(GroupThreads, AnErrorInOneGroupEndsAll) {
  GroupThreads threads(3, {});
  const auto body = [&](int group) {
    if (group == 1) throw std::runtime_error("broken");
    threads.barrier().arrive_and_wait();  // would wait for ever
  };
  EXPECT_THROW(threads.run(body), std::runtime_error);
}

TEST(GroupThreads, AThreadThatCannotStartIsAnError) {
  const auto start = [](int group) {
    if (group == 2) throw std::runtime_error("no such core");
  };
  EXPECT_THROW(GroupThreads(3, start), std::runtime_error);
}

}  // namespace
}  // namespace trireme
