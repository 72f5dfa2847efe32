#include "trireme/train/gradient_transform.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/train/small_training.hpp"
#include "trireme/base/error.hpp"

namespace trireme::train {
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

TEST(GradientTransform, CollectedRunsTrainLikeOneLargeBatch) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::momentum);
  SmallTraining large(12, rule), small(4, rule);
  GradientTransform transform(*small.session, *small.step, nullptr, {.accumulate = 3});
  small.step->set_exchange(&transform);
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

TEST(GradientTransform, TheNormIsClippedAndSmallerOnesAreLeftAlone) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  SmallTraining plain(4, rule), clipped(4, rule), untouched(4, rule);
  plain.run(0);
  const double full = norm(gradients(plain));
  GradientTransform clip(*clipped.session, *clipped.step, nullptr, {.clip_norm = full / 2});
  clipped.step->set_exchange(&clip);
  clipped.run(0);
  EXPECT_NEAR(clip.norm(), full, 1e-4 * full);
  EXPECT_NEAR(norm(gradients(clipped)), full / 2, 1e-4 * full);
  GradientTransform loose(*untouched.session, *untouched.step, nullptr, {.clip_norm = full * 2});
  untouched.step->set_exchange(&loose);
  untouched.run(0);
  EXPECT_EQ(untouched.values(), plain.values());
}

// By the formula, in double, for one weight.
TEST(GradientTransform, LarsScalesEachWeightByItsNorms) {
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  SmallTraining plain(4, rule), scaled(4, rule);
  const Lars lars{.coefficient = 0.02, .weight_decay = 0.1};
  const std::vector<float> before = plain.values();
  plain.run(0);
  GradientTransform transform(*scaled.session, *scaled.step, nullptr, {.lars = lars});
  scaled.step->set_exchange(&transform);
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
}  // namespace trireme::train
