// The vectorised rules against the reference backend's, and the mean of several gradients.
#include "trireme/optim/apply_rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/backend/bound_kernel.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme {
namespace {

using op::OptimizerKind;
using testkit::BoundKernel;
using testkit::expect_close;
using testkit::f32;

constexpr OptimizerKind kAllKinds[] = {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov,
                                       OptimizerKind::rmsprop, OptimizerKind::adam};
constexpr float kLearningRate = 0.1f;
constexpr std::int64_t kElements = 5003;  // more than two blocks of a mean, and no whole number of vectors

std::vector<float> waves(std::int64_t count, float phase) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(phase + 0.37f * static_cast<float>(i));
  return values;
}

// A variable with its state, as a server or a backend keeps it.
struct Trained {
  explicit Trained(OptimizerKind kind, std::int64_t count = kElements) : values(waves(count, 1)) {
    for (int i = 0; i < op::state_count(kind); ++i) states.emplace_back(values.size(), op::initial_state(kind, i));
  }
  RuleArrays arrays() {
    return {.values = values.data(),
            .first_state = !states.empty() ? states[0].data() : nullptr,
            .second_state = states.size() > 1 ? states[1].data() : nullptr};
  }
  bool operator==(const Trained&) const = default;

  std::vector<float> values;
  std::vector<std::vector<float>> states;
};

BoundKernel reference_update(const op::OptimizerRule& rule, const Trained& start, const std::vector<float>& gradient) {
  const Shape shape{static_cast<std::int64_t>(start.values.size())};
  return BoundKernel(op::ApplyGradients{rule},
                     {HostTensor(kLearningRate), f32(shape, start.values), f32(shape, gradient)}, {start.states});
}

TEST(ApplyRule, EveryRuleAgreesWithTheReferenceOverThreeSteps) {
  for (const OptimizerKind kind : kAllKinds) {
    for (const float weight_decay : {0.0f, 0.01f}) {
      SCOPED_TRACE(to_string(kind));
      const op::OptimizerRule rule = optimizer_rule(kind, weight_decay);
      Trained trained(kind);
      BoundKernel reference = reference_update(rule, trained, waves(kElements, 0));
      for (std::uint64_t step = 0; step < 3; ++step) {
        const std::vector<float> gradient = waves(kElements, static_cast<float>(step));
        reference.set_input(2, gradient);
        reference.run({.step = step});
        apply_rule(rule, RuleRates(rule, kLearningRate, step), trained.arrays(), gradient.data(), {0, kElements});
        // Adam divides by roots of very small numbers, whose rounding it magnifies.
        expect_close(trained.values, reference.input(1), kind == OptimizerKind::adam ? 1e-4f : 2e-6f);
        for (std::size_t i = 0; i < trained.states.size(); ++i) {
          expect_close(trained.states[i], reference.state(0, i), 2e-6f);
        }
      }
    }
  }
}

TEST(ApplyRule, WritesItsRangeOnly) {
  for (const OptimizerKind kind : kAllKinds) {
    SCOPED_TRACE(to_string(kind));
    const op::OptimizerRule rule = optimizer_rule(kind);
    const RuleRates rates(rule, kLearningRate, 0);
    const std::vector<float> gradient = waves(100, 2);
    Trained whole(kind, 100), part(kind, 100);
    const Trained start = part;
    apply_rule(rule, rates, whole.arrays(), gradient.data(), {0, 100});
    apply_rule(rule, rates, part.arrays(), gradient.data(), {17, 40});
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(part.values[i], i >= 17 && i < 57 ? whole.values[i] : start.values[i]) << i;
    }
  }
}

TEST(ApplyRule, PaddingStaysZero) {
  for (const OptimizerKind kind : kAllKinds) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    Trained trained(kind, 16);
    trained.values.assign(16, 0.0f);
    const std::vector<float> gradient(16, 0.0f);
    apply_rule(rule, RuleRates(rule, kLearningRate, 0), trained.arrays(), gradient.data(), {0, 16});
    EXPECT_EQ(trained.values, gradient) << to_string(kind);
  }
}

TEST(ApplyMean, OfOneGradientIsThatGradient) {
  for (const OptimizerKind kind : kAllKinds) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    const RuleRates rates(rule, kLearningRate, 0);
    const std::vector<float> gradient = waves(kElements, 3);
    const std::vector<const float*> one{gradient.data()};
    Trained alone(kind), mean(kind);
    apply_rule(rule, rates, alone.arrays(), gradient.data(), {0, kElements});
    apply_mean(rule, rates, mean.arrays(), {.gradients = one, .weights = {}, .count = 1}, {0, kElements});
    EXPECT_EQ(alone, mean) << to_string(kind);
  }
}

// From one gradient to more than are read together.
TEST(ApplyMean, IsTheWeightedSumOverTheCountForEveryRule) {
  for (const OptimizerKind kind : kAllKinds) {
    op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    if (kind == OptimizerKind::adam) rule.epsilon = 0.1f;  // or a rounding in a gradient near 0 changes its whole step
    for (const int count : {1, 2, 3, 4, 7, 8}) {
      SCOPED_TRACE(fmt::format("{} of {}", to_string(kind), count));
      std::vector<std::vector<float>> gradients;
      std::vector<const float*> pointers;
      std::vector<float> weights;
      std::vector<double> sum(kElements);
      for (int k = 0; k < count; ++k) {
        pointers.push_back(gradients.emplace_back(waves(kElements, static_cast<float>(k))).data());
        weights.push_back(0.5f + 0.25f * static_cast<float>(k));
        for (std::size_t i = 0; i < sum.size(); ++i)
          sum[i] += static_cast<double>(weights.back()) * gradients.back()[i];
      }
      std::vector<float> expected;
      for (const double value : sum) expected.push_back(static_cast<float>(value / count));
      Trained trained(kind);
      BoundKernel reference = reference_update(rule, trained, expected);
      apply_mean(rule, RuleRates(rule, kLearningRate, 0), trained.arrays(),
                 {.gradients = pointers, .weights = weights, .count = count}, {0, kElements});
      expect_close(trained.values, reference.run().input(1), 4e-6f);
    }
  }
}

// 1e8 + 1 − 1e8 is 0 in this order alone.
TEST(ApplyMean, AddsInTheOrderOfTheList) {
  const op::OptimizerRule rule = optimizer_rule(OptimizerKind::sgd);
  const std::vector<float> large(40, 1e8f), one(40, 1.0f), minus(40, -1e8f);
  const auto mean_of = [&](const std::vector<const float*>& gradients) {
    Trained trained(OptimizerKind::sgd, 40);
    trained.values.assign(40, 0.0f);
    apply_mean(rule, RuleRates(rule, 1, 0), trained.arrays(), {.gradients = gradients, .weights = {}, .count = 2},
               {0, 40});
    return trained.values;
  };
  EXPECT_EQ(mean_of({large.data(), one.data(), minus.data()}), std::vector<float>(40, 0.0f));
  EXPECT_EQ(mean_of({large.data(), minus.data(), one.data()}), std::vector<float>(40, -0.5f));
}

TEST(ApplyMean, DoesNotReadAGradientOfWeightZero) {
  const op::OptimizerRule rule = optimizer_rule(OptimizerKind::sgd);
  const std::vector<float> gradient(40, 2.0f), lost(40, std::numeric_limits<float>::quiet_NaN());
  const std::vector<const float*> gradients{lost.data(), gradient.data(), nullptr};
  const std::vector<float> weights{0, 1, 0};
  Trained trained(OptimizerKind::sgd, 40);
  trained.values.assign(40, 0.0f);
  apply_mean(rule, RuleRates(rule, 1, 0), trained.arrays(), {.gradients = gradients, .weights = weights, .count = 1},
             {0, 40});
  EXPECT_EQ(trained.values, std::vector<float>(40, -2.0f));
}

TEST(ApplyMean, DividingTheRangeChangesNothing) {
  const std::vector<float> a = waves(kElements, 0), b = waves(kElements, 1);
  const std::vector<const float*> gradients{a.data(), b.data()};
  const MeanGradient mean{.gradients = gradients, .weights = {}, .count = 2};
  for (const OptimizerKind kind : kAllKinds) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    const RuleRates rates(rule, kLearningRate, 4);
    Trained whole(kind), divided(kind);
    apply_mean(rule, rates, whole.arrays(), mean, {0, kElements});
    for (std::int64_t begin = 0; begin < kElements; begin += 1001) {
      apply_mean(rule, rates, divided.arrays(), mean, {begin, std::min<std::int64_t>(1001, kElements - begin)});
    }
    EXPECT_EQ(whole, divided) << to_string(kind);
  }
}

}  // namespace
}  // namespace trireme
