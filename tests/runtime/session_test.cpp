#include "trireme/runtime/session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>

#include "tests/support/apart_device.hpp"
#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/gradient_exchange.hpp"
#include "trireme/runtime/inter_op_pool.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {
namespace {

class SessionTest : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Backend> backend = testkit::make_test_backend(GetParam());
  Graph graph;
};

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "no error";
}

TEST_P(SessionTest, VariablesAreFoundByTheirNames) {
  const Tensor weights = variable(graph, {2}, op::Initializer::constant(1), "weights");
  Session session(graph, *backend);
  EXPECT_EQ(session.variables().find("weights"), weights.node);
  EXPECT_EQ(message_of([&] { session.variables().find("bias"); }),
            "there is no variable 'bias' among the 1 of this network");
}

TEST_P(SessionTest, RunsOnlyWhatTheFetchesNeed) {
  const Tensor x = placeholder(graph, {}, "x");
  const Tensor y = placeholder(graph, {}, "y");
  const Tensor doubled = x + x;
  const Tensor both = x * y;
  Session session(graph, *backend);
  EXPECT_EQ(session.run({doubled}, {{x, 3.0f}})[0].scalar(), 6.0f) << "y is not fed and not needed";
  EXPECT_EQ(session.run({both}, {{x, 3.0f}, {y, 4.0f}})[0].scalar(), 12.0f);
}

TEST_P(SessionTest, AMissingFeedIsNamed) {
  const Tensor x = placeholder(graph, {2, 3}, "pixels");
  Session session(graph, *backend);
  const std::string message = message_of([&] { session.run({relu(x)}); });
  EXPECT_NE(message.find("'pixels' (2x3)"), std::string::npos) << message;
}

TEST_P(SessionTest, AFeedOfAnotherShapeIsRefusedWithBoth) {
  const Tensor x = placeholder(graph, {2}, "x");
  Session session(graph, *backend);
  const std::string message = message_of([&] { session.run({relu(x)}, {{x, 1.0f}}); });
  EXPECT_NE(message.find("has shape 2 of f32"), std::string::npos) << message;
  EXPECT_NE(message.find("scalar"), std::string::npos) << message;
}

TEST_P(SessionTest, OneGraphRunsWithAnyBatchSize) {
  const Tensor images = placeholder(graph, {4, 3, 6, 6}, "images");
  const Tensor labels = placeholder(graph, {4}, "labels", DataType::i32);
  const Tensor filters = variable(graph, {8, 3, 3, 3}, op::Initializer::uniform(-1, 1), "filters");
  const Tensor weights = variable(graph, {5, 32}, op::Initializer::uniform(-1, 1), "weights");
  const Tensor features = max_pool(relu(convolution(images, filters)), {.kernel = {2, 2}, .stride = {2, 2}});
  const Tensor logits = fully_connected(flatten(slice(features, {0, 0, 0, 0}, {4, 8, 2, 2})), weights);
  const Tensor loss = softmax_cross_entropy(logits, labels);
  std::vector<Tensor> step = minimize(loss, optimizer_rule(op::OptimizerKind::sgd), 0.1f);
  Session session(graph, *backend);
  session.prepare(step);

  const auto image = [](int sample, int i) { return std::sin(static_cast<float>(100 * sample + i)); };
  const auto batch = [&](int first, int samples) {
    HostTensor value(TensorType{DataType::f32, {samples, 3, 6, 6}});
    for (int i = 0; i < samples * 108; ++i) value.f32()[i] = image(first + i / 108, i % 108);
    return value;
  };
  const auto classes = [](int samples) { return HostTensor({samples}, std::vector<std::int32_t>(samples, 1)); };
  const auto rows_of = [&](int first, int samples) {
    const HostTensor rows = session.run({logits}, {{images, batch(first, samples)}})[0];
    EXPECT_EQ(rows.shape(), (Shape{samples, 5}));
    return std::vector<float>(rows.f32().begin(), rows.f32().end());
  };

  session.run(step, std::vector<Feed>{{images, batch(0, 4)}, {labels, classes(4)}});
  const std::vector<float> four = rows_of(0, 4);
  for (const int samples : {1, 3, 7}) {
    const std::vector<float> rows = rows_of(0, samples);
    for (int i = 0; i < 5 * std::min(samples, 4); ++i) EXPECT_NEAR(rows[i], four[i], 1e-5) << samples << " samples";
  }
  // The mean is over the samples that are fed.
  const float both = session.run({loss}, {{images, batch(0, 2)}, {labels, classes(2)}})[0].scalar();
  float sum = 0;
  for (const int first : {0, 1}) {
    sum += session.run({loss}, {{images, batch(first, 1)}, {labels, classes(1)}})[0].scalar();
  }
  EXPECT_NEAR(both, sum / 2, 1e-5);
}

TEST_P(SessionTest, WhatIsTiedToABatchSizeIsNamed) {
  const Tensor x = placeholder(graph, {4, 2}, "x");
  const Tensor w = variable(graph, {2}, op::Initializer::constant(1), "w");
  Session session(graph, *backend);
  const HostTensor six(TensorType{DataType::f32, {6, 2}});
  const auto message = [&](Tensor fetch) { return message_of([&] { session.run({fetch}, {{x, six}}); }); };
  EXPECT_NE(message(slice(x, {1, 0}, {2, 2}, "middle")).find("'middle' takes 2 samples of a batch of 4"),
            std::string::npos);
  const HostTensor one(TensorType{DataType::f32, {1, 2}});
  const Tensor offsets = constant(graph, HostTensor(TensorType{DataType::f32, {4, 2}}), "offsets");
  EXPECT_NE(message_of([&] {
              session.run({x + offsets}, {{x, one}});
            }).find("fixes the batch size"),
            std::string::npos)
      << "and is not broadcast to the graph's four";
  EXPECT_NE(message(reshape(x, {2, 4}, "pairs")).find("'pairs' reshapes a batch of 4 to 2x4"), std::string::npos);
  const auto step = minimize(reduce_sum(x * w), optimizer_rule(op::OptimizerKind::sgd), 0.1f);
  const std::string training = message_of([&] { session.run(step, std::vector<Feed>{{x, six}}); });
  EXPECT_NE(training.find("training uses the batch size of its graph"), std::string::npos) << training;
  EXPECT_EQ(session.run({reduce_sum(x)}, {{x, six}})[0].scalar(), 0) << "and what failed is not in the way";
}

TEST_P(SessionTest, VariablesKeepTheirValuesBetweenRunsAndPrograms) {
  const Tensor w = variable(graph, {2}, op::Initializer::constant(1), "w");
  const Tensor loss = reduce_sum(square(w));
  const auto train = minimize(loss, optimizer_rule(op::OptimizerKind::sgd), 0.25f);
  Session session(graph, *backend);
  session.run(train);
  EXPECT_EQ(session.value(w).f32()[0], 0.5f);
  EXPECT_EQ(session.run({loss})[0].scalar(), 0.5f);
  session.run(train);
  EXPECT_EQ(session.run({loss})[0].scalar(), 0.125f);
  session.assign(w, HostTensor({2}, std::vector<float>{3, 4}));
  EXPECT_EQ(session.run({loss})[0].scalar(), 25.0f);
}

TEST_P(SessionTest, AValueAssignedBeforeTheFirstRunIsTheInitialOne) {
  const Tensor w = variable(graph, {2}, op::Initializer::constant(1), "w");
  Session session(graph, *backend);
  EXPECT_EQ(session.value(w).f32()[1], 1.0f);
  session.assign(w, HostTensor({2}, std::vector<float>{3, 4}));
  EXPECT_EQ(session.value(w).f32()[1], 4.0f);
  EXPECT_EQ(session.run({reduce_sum(w)})[0].scalar(), 7.0f);
}

TEST_P(SessionTest, OnlyTrainingStepsCount) {
  const Tensor w = variable(graph, {}, op::Initializer::constant(1), "w");
  const Tensor assign = graph.add(op::Assign{}, {w, constant(graph, 5.0f)});
  const auto train = minimize(square(w), optimizer_rule(op::OptimizerKind::adam), 0.1f);
  Session session(graph, *backend);
  session.run({assign});
  EXPECT_EQ(session.variables().step, 0u);
  session.run(train);
  EXPECT_EQ(session.variables().step, 1u);
}

TEST_P(SessionTest, AVariableFetchedWithItsUpdateHasTheNewValue) {
  const Tensor w = variable(graph, {}, op::Initializer::constant(1), "w");
  const Tensor assign = graph.add(op::Assign{}, {w, constant(graph, 5.0f)});
  Session session(graph, *backend);
  EXPECT_EQ(session.run({w, assign})[0].scalar(), 5.0f);
}

TEST_P(SessionTest, OptimizersOfOneSessionKeepTheirStateApart) {
  const Tensor a = variable(graph, {}, op::Initializer::constant(1), "a");
  const Tensor b = variable(graph, {}, op::Initializer::constant(1), "b");
  const Tensor rate = constant(graph, 0.1f);
  const auto first = minimize(square(a), optimizer_rule(op::OptimizerKind::momentum), rate, {a});
  const auto second = minimize(square(b), optimizer_rule(op::OptimizerKind::rmsprop), rate, {b});
  Session session(graph, *backend);
  session.run(first);
  session.run(second);
  // s starts at 1: 0.9 + 0.1 * 4 under the root, with epsilon 1.
  EXPECT_NEAR(session.value(b).scalar(), 1 - 0.1f * 2 / std::sqrt(0.9f + 0.4f + 1.0f), 1e-6f);
}

// Weights with decay and offsets without take turns in the network, but not in memory.
TEST_P(SessionTest, VariablesOfOneRuleAreUpdatedTogether) {
  Tensor x = placeholder(graph, {2, 8}, "x");
  for (int layer = 0; layer < 4; ++layer) {
    const std::string name = "layer" + std::to_string(layer);
    x = relu(fully_connected_bias(x, variable(graph, {8, 8}, op::Initializer::constant(0.1f), name + "/weights"),
                                  variable(graph, {8}, op::Initializer::constant(0), name + "/offsets")));
  }
  const auto rule = [](Tensor variable) {
    return optimizer_rule(op::OptimizerKind::momentum, variable.shape().rank() == 2 ? 0.5f : 0);
  };
  const std::vector<Tensor> updates = minimize(reduce_sum(x), RuleFor(rule), constant(graph, 0.1f));
  Session session(graph, *backend);
  const std::vector<GradientBucket> buckets = session.prepare(updates).gradient_buckets(MemorySide::host);
  ASSERT_EQ(buckets.size(), 2u);
  for (const GradientBucket& bucket : buckets) {
    EXPECT_EQ(bucket.variables.size(), 4u) << bucket.name;
    EXPECT_EQ(bucket.parts.size(), 1u) << bucket.name << ": neighbours in memory";
  }
}

TEST_P(SessionTest, FeedingWhatIsNoPlaceholderIsRefused) {
  const Tensor x = placeholder(graph, {}, "x");
  const Tensor y = square(x);
  Session session(graph, *backend);
  const std::string message = message_of([&] { session.run({y}, {{x, 1.0f}, {y, 2.0f}}); });
  EXPECT_NE(message.find("not a placeholder"), std::string::npos) << message;
}

TEST_P(SessionTest, TheSameSeedGivesTheSameValues) {
  const Tensor w = variable(graph, {64}, op::Initializer::truncated_normal(1), "w");
  const Tensor v = variable(graph, {64}, op::Initializer::truncated_normal(1), "v");
  auto values = [&](Tensor t, std::uint64_t seed) {
    Session session(graph, *backend, {.seed = seed});
    const HostTensor value = session.run({t})[0];
    return std::vector<float>(value.f32().begin(), value.f32().end());
  };
  EXPECT_EQ(values(w, 1), values(w, 1));
  EXPECT_NE(values(w, 1), values(w, 2));
  EXPECT_NE(values(w, 1), values(v, 1));
}

// Convolution, batch norm, residual sum, pooling, two branches: enough for layouts, fusing and memory to matter.
struct SmallNetwork {
  explicit SmallNetwork(Graph& graph) {
    images = placeholder(graph, {4, 3, 10, 10}, "images");
    labels = placeholder(graph, {4}, "labels", DataType::i32);
    auto conv = [&](Tensor src, std::int64_t out, std::int64_t kernel) {
      const std::int64_t in = src.shape()[1];
      const Tensor w = variable(graph, {out, in, kernel, kernel},
                                op::Initializer::variance_scaling(1, in * kernel * kernel), "weights");
      return convolution(src, w, op::same_padding({.kernel = {kernel, kernel}}, src.shape()[2], src.shape()[3]));
    };
    auto norm = [&](Tensor src) {
      const std::int64_t n = src.shape()[1];
      const Tensor gamma = variable(graph, {n}, op::Initializer::constant(1), "gamma");
      const Tensor beta = variable(graph, {n}, op::Initializer::constant(0), "beta");
      return graph.add(op::BatchNorm{}, {src, gamma, beta});
    };
    Tensor x = relu(norm(conv(images, 24, 3)));
    x = relu(norm(conv(x, 24, 3)) + x);
    x = concat({relu(conv(x, 16, 1)), relu(conv(x, 20, 3)),
                max_pool(x, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}})});
    x = reduce_mean(x, {2, 3});
    const Tensor w = variable(graph, {7, x.shape()[1]}, op::Initializer::truncated_normal(0.1f), "fc");
    const Tensor b = variable(graph, {7}, op::Initializer::constant(0), "bias");
    loss = softmax_cross_entropy(fully_connected_bias(x, w, b), labels);
    fetches = minimize(loss, optimizer_rule(op::OptimizerKind::momentum), 0.05f);
    fetches.insert(fetches.begin(), loss);
  }

  std::vector<float> losses(Graph& graph, const Backend& backend, SessionOptions options, int steps = 10) const {
    Session session(graph, backend, std::move(options));
    Executable& step = session.prepare(fetches);
    auto pixels = step.input_f32(images);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<float>(i * 37 % 101) / 50.0f - 1.0f;
    for (std::size_t i = 0; i < 4; ++i) step.input_i32(labels)[i] = static_cast<std::int32_t>(2 * i % 7);
    std::vector<float> curve;
    for (int i = 0; i < steps; ++i) {
      step.run();
      curve.push_back(step.output(0)[0]);
    }
    return curve;
  }

  Tensor images, labels, loss;
  std::vector<Tensor> fetches;
};

void expect_close(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-4f * (1 + std::abs(a[i]))) << "step " << i;
}

TEST_P(SessionTest, TheLossCurveIsThatOfTheReferenceWithoutFusingOrPlanning) {
  const SmallNetwork network(graph);
  const auto reference = make_backend("reference");
  SessionOptions plain;
  plain.compile.fuse = false;
  plain.compile.plan_memory = false;
  const auto oracle = network.losses(graph, *reference, plain);
  EXPECT_LT(oracle.back(), oracle.front());
  expect_close(network.losses(graph, *backend, {}), oracle);
  for (const DataFormat format : {DataFormat::nchw, DataFormat::nhwc}) {
    SessionOptions options;
    options.compile.data_format = format;
    expect_close(network.losses(graph, *backend, options), oracle);
  }
}

TEST_P(SessionTest, TheLossCurveHoldsWithEveryKernelForcedInTurn) {
  const SmallNetwork network(graph);
  const auto oracle = network.losses(graph, *make_backend("reference"), {});
  for (const char* kernel : {"direct", "winograd", "own_winograd", "channels_last", "library", "own"}) {
    const auto forced = testkit::make_test_backend(GetParam(), {.force = kernel});
    expect_close(network.losses(graph, *forced, {}), oracle);
  }
}

TEST_P(SessionTest, InterOpThreadsGiveTheSameLossCurve) {
  const SmallNetwork network(graph);
  SessionOptions options;
  options.compile.inter_threads = 3;
  const auto serial = network.losses(graph, *backend, {});
  for (int attempt = 0; attempt < 3; ++attempt) EXPECT_EQ(network.losses(graph, *backend, options), serial);
}

TEST_P(SessionTest, AFoldedBatchNormFollowsItsVariables) {
  const Tensor x = placeholder(graph, {1, 1, 2, 2}, "x");
  const Tensor w = variable(graph, {1, 1, 1, 1}, op::Initializer::constant(2), "w");
  const Tensor gamma = variable(graph, {1}, op::Initializer::constant(3), "gamma");
  const Tensor beta = variable(graph, {1}, op::Initializer::constant(1), "beta");
  const Tensor mean = variable(graph, {1}, op::Initializer::constant(0.5f), "mean", false);
  const Tensor variance = variable(graph, {1}, op::Initializer::constant(4), "variance", false);
  const Tensor y = graph.add(op::BatchNormInference{}, {convolution(x, w), gamma, beta, mean, variance});
  Session session(graph, *backend);
  const HostTensor input({1, 1, 2, 2}, std::vector<float>{1, 2, 3, 4});
  constexpr float kTolerance = 1e-4f;  // epsilon of the batch norm is 1e-5 beside a variance of 4
  EXPECT_NEAR(session.run({y}, {{x, input}})[0].f32()[3], (8 - 0.5f) / 2 * 3 + 1, kTolerance);
  session.assign(gamma, HostTensor({1}, std::vector<float>{1}));
  EXPECT_NEAR(session.run({y}, {{x, input}})[0].f32()[3], (8 - 0.5f) / 2 + 1, kTolerance);
}

TEST_P(SessionTest, AProfileCoversEveryInstruction) {
  const SmallNetwork network(graph);
  Session session(graph, *backend);
  Executable& step = session.prepare(network.fetches);
  step.enable_profile();
  step.run();
  step.run();
  EXPECT_EQ(step.profile().runs, 2);
  ASSERT_EQ(step.profile().seconds.size(), step.program().instructions.size());
  for (std::size_t i = 0; i < step.profile().seconds.size(); ++i) {
    const Instruction& instruction = step.program().instructions[i];
    EXPECT_TRUE(instruction.once || step.profile().seconds[i] > 0) << instruction.name;
  }
}

TEST(HostTensor, TakesAsManyValuesAsTheShapeHasElements) {
  const std::vector<float> three{1, 2, 3};
  EXPECT_THROW(HostTensor({2}, three), Error);
  EXPECT_THROW(HostTensor({4}, three), Error);
  EXPECT_THROW(HostTensor({3}, three).scalar(), Error);
  EXPECT_EQ(HostTensor({3}, three).f32()[2], 3.0f);
}

std::vector<std::string> backends() {
  std::vector<std::string> names = backend_names();
  names.emplace_back("apart");
  return names;
}

INSTANTIATE_TEST_SUITE_P(Backends, SessionTest, testing::ValuesIn(backends()),
                         [](const auto& test) { return test.param; });

TEST(InterOpPool, RunsEachItemOnceAfterWhatItWaitsFor) {
  // A diamond repeated: 0 -> {1, 2} -> 3 -> {4, 5} -> 6.
  const std::vector<std::vector<int>> successors{{1, 2}, {3}, {3}, {4, 5}, {6}, {6}, {}};
  const std::vector<int> predecessors{0, 1, 1, 2, 1, 1, 2};
  InterOpPool pool(3, nullptr);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::atomic<int>> done(7);
    pool.run(successors, predecessors, [&](int item, int) {
      for (int before = 0; before < item; ++before) {
        for (const int next : successors[before]) {
          EXPECT_TRUE(next != item || done[before] == 1);
        }
      }
      ++done[item];
    });
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
}

TEST(InterOpPool, TheFirstErrorEndsTheRunAndThePoolGoesOn) {
  InterOpPool pool(2, nullptr);
  const std::vector<std::vector<int>> successors{{1}, {}};
  const std::vector<int> predecessors{0, 1};
  bool second = false;
  EXPECT_THROW(pool.run(successors, predecessors,
                        [&](int item, int) {
                          if (item == 0) throw Error(ErrorKind::failed, "broken");
                          second = true;
                        }),
               Error);
  EXPECT_FALSE(second);
  int runs = 0;
  pool.run(successors, predecessors, [&](int, int) { ++runs; });
  EXPECT_EQ(runs, 2);
}

}  // namespace
}  // namespace trireme
