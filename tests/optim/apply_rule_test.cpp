// Every rule, vectorised and of the reference backend, against formulas of its own, and the mean of several gradients.
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

constexpr float kLearningRate = 0.1f;
constexpr std::int64_t kElements = 5003;  // more than two blocks of a mean, and no whole number of vectors

std::vector<OptimizerKind> all_kinds() {
  std::vector<OptimizerKind> kinds;
  for (const op::OptimizerInfo& info : op::kOptimizers) kinds.push_back(info.kind);
  return kinds;
}

std::vector<float> waves(std::int64_t count, float phase) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(phase + 0.37f * static_cast<float>(i));
  return values;
}

// A variable with its state, as a server or a backend keeps it.
struct Trained {
  explicit Trained(OptimizerKind kind, std::int64_t count = kElements) : values(waves(count, 1)) {
    for (int i = 0; i < op::state_count(kind); ++i) states.emplace_back(values.size(), op::initial_state(kind, i));
  }
  RuleArrays arrays() {
    pointers.clear();
    for (std::vector<float>& state : states) pointers.push_back(state.data());
    return {.values = values.data(), .states = pointers};
  }
  bool operator==(const Trained& other) const { return values == other.values && states == other.states; }

  std::vector<float> values;
  std::vector<std::vector<float>> states;
  std::vector<float*> pointers;
};

BoundKernel reference_update(const op::OptimizerRule& rule, const Trained& start, const std::vector<float>& gradient) {
  const Shape shape{std::ssize(start.values)};
  return BoundKernel(op::ApplyGradients{rule},
                     {HostTensor(kLearningRate), f32(shape, start.values), f32(shape, gradient)}, {start.states});
}

// The rules once more, as their papers have them, for one element in double. All else computes with the formulas of
// graph/ops/optimizers.hpp, the reference backend too.
void update_by_hand(const op::OptimizerRule& rule, double t, double gradient, double& x, std::vector<double>& s) {
  const double lr = kLearningRate, mu = rule.momentum, rho = rule.decay, b1 = rule.beta1, b2 = rule.beta2;
  const double epsilon = rule.epsilon, decay = rule.weight_decay, g = gradient + decay * x;
  const auto adam_step = [&](double by) {
    s = {b1 * s[0] + by - b1 * by, b2 * s[1] + by * by - b2 * by * by};
    const double first = s[0] / (1 - std::pow(b1, t)), correction = 1 - std::pow(b2, t);
    // TensorFlow's epsilon: added before the correction.
    return lr * first / (std::sqrt(s[1] / correction) + epsilon / std::sqrt(correction));
  };
  switch (rule.kind) {
    case OptimizerKind::sgd:
      x = x - lr * g;
      return;
    case OptimizerKind::momentum:
      s = {mu * s[0] + g};
      x = x - lr * s[0];
      return;
    case OptimizerKind::nesterov:
      s = {mu * s[0] + g};
      x = x - lr * g - lr * mu * s[0];
      return;
    case OptimizerKind::rmsprop:
      s[0] = rho * s[0] + g * g - rho * g * g;
      s[1] = mu * s[1] + lr * g / std::sqrt(s[0] + epsilon);
      x = x - s[1];
      return;
    case OptimizerKind::adam:
      x = x - adam_step(g);
      return;
    case OptimizerKind::adamw:
      x = x * (1 - lr * decay) - adam_step(gradient);
      return;
    case OptimizerKind::lion: {
      const double direction = b1 * s[0] + gradient - b1 * gradient;
      s = {b2 * s[0] + gradient - b2 * gradient};
      x = x * (1 - lr * decay) - lr * ((direction > 0) - (direction < 0));
      return;
    }
  }
}

TEST(ApplyRule, EveryRuleIsAsWrittenByHandOverThreeSteps) {
  for (const OptimizerKind kind : all_kinds()) {
    for (const float weight_decay : {0.0f, 0.01f}) {
      SCOPED_TRACE(to_string(kind));
      const op::OptimizerRule rule = optimizer_rule(kind, weight_decay);
      Trained trained(kind);
      BoundKernel reference = reference_update(rule, trained, waves(kElements, 0));
      std::vector<double> values(trained.values.begin(), trained.values.end());
      std::vector<double> begin;
      for (const std::vector<float>& state : trained.states) begin.push_back(state[0]);
      std::vector<std::vector<double>> states(values.size(), begin);
      for (std::uint64_t step = 0; step < 3; ++step) {
        const std::vector<float> gradient = waves(kElements, static_cast<float>(step));
        reference.set_input(2, gradient);
        reference.run({.step = step});
        apply_rule(rule, op::rates_at(rule, kLearningRate, step), trained.arrays(), gradient.data(), {0, kElements});
        for (std::size_t i = 0; i < values.size(); ++i) {
          update_by_hand(rule, static_cast<double>(step + 1), gradient[i], values[i], states[i]);
        }
        const std::vector<float> expected(values.begin(), values.end());
        // With a small epsilon roots of very small numbers divide, which magnifies their rounding.
        expect_close(trained.values, expected, rule.epsilon < 1 ? 1e-4f : 2e-6f);
        expect_close(reference.input(1), expected, 1e-6f);
        for (std::size_t s = 0; s < begin.size(); ++s) {
          std::vector<float> state;
          for (const std::vector<double>& own : states) state.push_back(static_cast<float>(own[s]));
          expect_close(trained.states[s], state, 2e-6f);
          expect_close(reference.state(0, s), state, 1e-6f);
        }
      }
    }
  }
}

TEST(ApplyRule, WritesItsRangeOnly) {
  for (const OptimizerKind kind : all_kinds()) {
    SCOPED_TRACE(to_string(kind));
    const op::OptimizerRule rule = optimizer_rule(kind);
    const op::Rates<float> rates = op::rates_at(rule, kLearningRate, 0);
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
  for (const OptimizerKind kind : all_kinds()) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    Trained trained(kind, 16);
    trained.values.assign(16, 0.0f);
    const std::vector<float> gradient(16, 0.0f);
    apply_rule(rule, op::rates_at(rule, kLearningRate, 0), trained.arrays(), gradient.data(), {0, 16});
    EXPECT_EQ(trained.values, gradient) << to_string(kind);
  }
}

TEST(ApplyMean, OfOneGradientIsThatGradient) {
  for (const OptimizerKind kind : all_kinds()) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    const op::Rates<float> rates = op::rates_at(rule, kLearningRate, 0);
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
  for (const OptimizerKind kind : all_kinds()) {
    op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    if (rule.epsilon < 1) rule.epsilon = 0.1f;  // or a rounding in a gradient near 0 changes its whole step
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
      apply_mean(rule, op::rates_at(rule, kLearningRate, 0), trained.arrays(),
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
    apply_mean(rule, op::rates_at(rule, 1, 0), trained.arrays(), {.gradients = gradients, .weights = {}, .count = 2},
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
  apply_mean(rule, op::rates_at(rule, 1, 0), trained.arrays(), {.gradients = gradients, .weights = weights, .count = 1},
             {0, 40});
  EXPECT_EQ(trained.values, std::vector<float>(40, -2.0f));
}

TEST(ApplyMean, DividingTheRangeChangesNothing) {
  const std::vector<float> a = waves(kElements, 0), b = waves(kElements, 1);
  const std::vector<const float*> gradients{a.data(), b.data()};
  const MeanGradient mean{.gradients = gradients, .weights = {}, .count = 2};
  for (const OptimizerKind kind : all_kinds()) {
    const op::OptimizerRule rule = optimizer_rule(kind, 0.01f);
    const op::Rates<float> rates = op::rates_at(rule, kLearningRate, 4);
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
