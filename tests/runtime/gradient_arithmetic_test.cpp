#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/small_training.hpp"
#include "trireme/base/error.hpp"
#include "trireme/plan/schedule.hpp"

namespace trireme {
namespace {

using testkit::SmallTraining;

std::vector<float> gradients(SmallTraining& training) {
  std::vector<float> all;
  for (const NodeId id : training.store().trainable()) {
    const float* values = training.store().gradient(id);
    all.insert(all.end(), values, values + training.store().stored(id).size());
  }
  return all;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

void expect_near(const std::vector<float>& a, const std::vector<float>& b, float tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance) << i;
}

TEST(GradientArithmetic, CollectedRunsTrainLikeOneLargeBatch) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::momentum);
  SmallTraining large(12, rule), small(4, rule);
  small.step->set_exchange(nullptr, {.accumulate = 3});
  for (int i = 0; i < 4; ++i) {
    large.run(i * 12);
    for (int part = 0; part < 3; ++part) {
      EXPECT_EQ(small.store().step, static_cast<std::uint64_t>(i));
      small.run(i * 12 + part * 4);
    }
  }
  EXPECT_EQ(small.store().step, 4u);
  expect_near(small.values(), large.values(), 2e-5f);
}

TEST(GradientArithmetic, TheNormIsClippedAndSmallerOnesAreLeftAlone) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  SmallTraining plain(4, rule), clipped(4, rule), untouched(4, rule);
  plain.run(0);
  const double full = norm(gradients(plain));
  clipped.step->set_exchange(nullptr, {.clip_norm = full / 2});
  clipped.run(0);
  EXPECT_NEAR(clipped.step->gradient_norm(), full, 1e-4 * full);
  EXPECT_NEAR(norm(gradients(clipped)), full / 2, 1e-4 * full);
  untouched.step->set_exchange(nullptr, {.clip_norm = full * 2});
  untouched.run(0);
  EXPECT_EQ(untouched.values(), plain.values());
}

// By the formula, in double, for one weight.
TEST(GradientArithmetic, LarsScalesEachWeightByItsNorms) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  SmallTraining plain(4, rule), scaled(4, rule);
  const Lars lars{.coefficient = 0.02, .weight_decay = 0.1};
  const std::vector<float> before = plain.values();
  plain.run(0);
  scaled.step->set_exchange(nullptr, {.lars = lars});
  scaled.run(0);
  SmallTraining untrained(4, rule);
  for (const NodeId id : plain.store().trainable()) {
    const HostTensor w = untrained.store().get(id), after = plain.store().get(id), result = scaled.store().get(id);
    const bool is_weight = w.shape().rank() > 1;
    std::vector<float> g(w.f32().size());
    for (std::size_t i = 0; i < g.size(); ++i) g[i] = (w.f32()[i] - after.f32()[i]) / 0.05f;
    const double value_norm = norm({w.f32().begin(), w.f32().end()}), gradient_norm = norm(g);
    const double rate =
        is_weight ? lars.coefficient * value_norm / (gradient_norm + lars.weight_decay * value_norm) : 1;
    for (std::size_t i = 0; i < g.size(); ++i) {
      const double decayed = g[i] + (is_weight ? lars.weight_decay * w.f32()[i] : 0);
      ASSERT_NEAR(result.f32()[i], w.f32()[i] - 0.05 * rate * decayed, 1e-5) << plain.store().node(id).name;
    }
  }
}

}  // namespace
}  // namespace trireme
