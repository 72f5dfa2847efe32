// Training with Precision::bf16: near the loss curve of fp32, with nothing lost in the variables.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/random.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/batch_split.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {
namespace {

std::shared_ptr<Backend> bf16_backend() {
  auto backend = make_backend(default_backend());
  return backend->is_fast_in(Precision::bf16) ? std::move(backend) : nullptr;
}

bool stores_bf16(const Program& program) {
  return std::any_of(program.buffers.begin(), program.buffers.end(),
                     [](const Buffer& buffer) { return buffer.desc.dtype == DataType::bf16; });
}

// Not fp32 in silence: whoever asks for half the bits gets them or an error.
TEST(Precision, WhatABackendDoesNotHaveIsRefused) {
  for (const std::string& name : backend_names()) {
    const auto backend = make_backend(name);
    for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
      if (backend->is_fast_in(precision)) continue;
      Graph graph;
      const Model model = build_model(graph, "trivial", {.batch_size = 1, .training = false});
      Session session(graph, *backend, {.compile = {.precision = precision}});
      try {
        session.prepare(std::array{model.logits});
        FAIL() << name;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        EXPECT_NE(std::string(error.what()).find("the backend '" + name + "' does not support"), std::string::npos)
            << error.what();
      }
    }
  }
}

// Losses of some steps on one fixed batch of twelve images.
std::vector<double> losses(const Backend& backend, const std::string& name, Precision precision, int groups, int steps,
                           Recompute recompute = Recompute::none) {
  constexpr std::int64_t kImages = 12;
  const std::int64_t share = kImages / groups;
  Graph graph;
  const Model model = build_model(graph, name, {.batch_size = share, .groups = groups, .num_classes = 5});
  std::vector<Tensor> fetches{model.loss};
  for (const Tensor& update : minimize(model.loss, optimizer_rule(op::OptimizerKind::momentum), 0.01f))
    fetches.push_back(update);
  Session session(graph, backend,
                  {.seed = 7, .compile = {.recompute = recompute, .precision = precision}, .groups = groups});
  BatchSplit& split = session.prepare_split(fetches);
  EXPECT_EQ(stores_bf16(split.group(0).program()), precision == Precision::bf16);
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
  std::vector<double> curve;
  for (int step = 0; step < steps; ++step) {
    split.run();
    curve.push_back(split.mean_output(0));
  }
  return curve;
}

// 2^-8 is what one rounding to bf16 loses; a network adds up many, and losses fall from step to step.
void expect_near(const std::vector<double>& actual, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step)
    EXPECT_NEAR(actual[step], expected[step], 0.06 * expected.front()) << "step " << step;
}

class PrecisionTest : public testing::TestWithParam<const char*> {};

TEST_P(PrecisionTest, TheLossFallsAsInFp32) {
  const auto backend = bf16_backend();
  if (!backend) GTEST_SKIP() << "this machine has no bf16";
  constexpr int kUpdates = 12;
  const auto fp32 = losses(*backend, GetParam(), Precision::fp32, 1, kUpdates);
  const auto bf16 = losses(*backend, GetParam(), Precision::bf16, 1, kUpdates);
  EXPECT_LT(bf16.back(), 0.9 * bf16.front());
  expect_near(bf16, fp32);
}

TEST_P(PrecisionTest, ASplitBatchTrainsLikeTheWhole) {
  const auto backend = bf16_backend();
  if (!backend) GTEST_SKIP() << "this machine has no bf16";
  expect_near(losses(*backend, GetParam(), Precision::bf16, 2, 5), losses(*backend, GetParam(), Precision::bf16, 1, 5));
}

// mnist has dropout and fully connected layers, resnet20 batch norm and residuals.
INSTANTIATE_TEST_SUITE_P(Networks, PrecisionTest, testing::Values("mnist", "resnet20"),
                         [](const auto& each) { return std::string(each.param); });

TEST(Precision, RecomputationChangesNothing) {
  const auto backend = bf16_backend();
  if (!backend) GTEST_SKIP() << "this machine has no bf16";
  EXPECT_EQ(losses(*backend, "resnet20", Precision::bf16, 1, 3, Recompute::cheap),
            losses(*backend, "resnet20", Precision::bf16, 1, 3));
}

// Each update is a hundredth of what bf16 can tell apart from 1.
TEST(Precision, UpdatesThatBf16WouldLoseAddUp) {
  const auto backend = bf16_backend();
  if (!backend) GTEST_SKIP() << "this machine has no bf16";
  Graph graph;
  const Tensor x = placeholder(graph, {1, 16, 4, 4}, "x");
  const Tensor w = variable(graph, {16, 16, 1, 1}, op::Initializer::constant(1), "w");
  const Tensor loss = reduce_mean(convolution(x, w, {.kernel = {1, 1}}));
  const std::vector<Tensor> fetches = minimize(loss, optimizer_rule(op::OptimizerKind::sgd), 0x1.0p-10f);
  Session session(graph, *backend, {.compile = {.precision = Precision::bf16}});
  Executable& step = session.prepare(fetches);
  ASSERT_TRUE(stores_bf16(step.program()));
  std::ranges::fill(step.input_f32(x), 1.0f);
  constexpr int kUpdates = 32;
  for (int i = 0; i < kUpdates; ++i) step.run();
  // The loss is the mean over 16 outputs of sums over w: the gradient is 1/16.
  const float expected = 1 - kUpdates * 0x1.0p-14f;
  const HostTensor weights = session.value(w);
  for (const float value : weights.f32()) EXPECT_EQ(value, expected);
}

TEST(Precision, WhatIsFetchedIsF32) {
  const auto backend = bf16_backend();
  if (!backend) GTEST_SKIP() << "this machine has no bf16";
  Graph graph;
  const Tensor x = placeholder(graph, {1, 16, 4, 4}, "x");
  const Tensor w = variable(graph, {16, 16, 1, 1}, op::Initializer::constant(0.125f), "w");
  const Tensor y = convolution(x, w, {.kernel = {1, 1}});
  Session session(graph, *backend, {.compile = {.precision = Precision::bf16}});
  HostTensor ones(x.type());
  std::ranges::fill(ones.f32(), 1.0f);
  const HostTensor value = session.run({y}, {{x, ones}}).at(0);
  ASSERT_EQ(value.type(), y.type());
  for (const float v : value.f32()) EXPECT_EQ(v, 2);
}

}  // namespace
}  // namespace trireme
