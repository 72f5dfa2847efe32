// Training with a scaled loss: the scale changes nothing but what overflows, and steps that overflow are left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "trireme/backend/registry.hpp"
#include "trireme/base/random.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/variable_store.hpp"

namespace trireme {
namespace {

class LossScaleTest : public testing::TestWithParam<std::string> {
 protected:
  std::shared_ptr<Backend> backend = make_backend(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Backends, LossScaleTest, testing::ValuesIn(backend_names()),
                         [](const auto& each) { return each.param; });

// A network with each kind of gradient: of weights, biases, batch norm.
class Network {
 public:
  Network(const Backend& backend, op::OptimizerKind optimizer, bool scaled, Precision precision = Precision::fp32) {
    LayerBuilder layers(graph_);
    Tensor x = layers.convolution(images_, {.channels = 8, .kernel = {3, 3}});
    layers.use_batch_norm({});
    x = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
    const Tensor loss = softmax_cross_entropy(layers.fully_connected(x, 5, false, "logits"), labels_);
    trained_ = graph_.trainable_variables();
    if (scaled) scale_ = add_loss_scale(graph_);
    const op::OptimizerRule rule = optimizer_rule(optimizer, 0.01f);
    fetches_ = {loss};
    const auto updates = minimize(
        loss, [&rule](Tensor) { return rule; }, constant(graph_, 0.01f), trained_, scaled ? &scale_ : nullptr);
    fetches_.insert(fetches_.end(), updates.begin(), updates.end());
    session_ =
        std::make_unique<Session>(graph_, backend, SessionOptions{.seed = 7, .compile = {.precision = precision}});
  }

  // On the samples of this number, one of whose pixels is as given. Returns the loss.
  float run(std::uint64_t sample, float pixel = 0) {
    HostTensor images(images_.type());
    HostTensor labels(labels_.type());
    fill_truncated_normal(images.f32(), 0, 1, random_key(sample, "images"));
    images.f32()[17] = pixel;
    for (std::size_t i = 0; i < labels.i32().size(); ++i) labels.i32()[i] = static_cast<std::int32_t>(i % 5);
    return session_->run(fetches_, std::vector<Feed>{{images_, images}, {labels_, labels}})[0].scalar();
  }

  std::vector<float> weights() {
    std::vector<float> all;
    for (const Tensor& variable : trained_) {
      const HostTensor value = session_->value(variable);
      all.insert(all.end(), value.f32().begin(), value.f32().end());
    }
    return all;
  }
  float scale() { return session_->value(scale_.scale).scalar(); }
  float skipped() { return session_->value(scale_.skipped_updates).scalar(); }

 private:
  Graph graph_;
  Tensor images_ = placeholder(graph_, {8, 2, 8, 8}, "images");
  Tensor labels_ = placeholder(graph_, {8}, "labels", DataType::i32);
  std::vector<Tensor> trained_, fetches_;
  LossScale scale_;
  std::unique_ptr<Session> session_;
};

// The scale is a power of two: it goes through sums and products without a rounding.
TEST_P(LossScaleTest, TrainsToTheSameBits) {
  for (const op::OptimizerKind optimizer : {op::OptimizerKind::momentum, op::OptimizerKind::adam}) {
    Network plain(*backend, optimizer, false), scaled(*backend, optimizer, true);
    for (std::uint64_t step = 0; step < 4; ++step) {
      plain.run(step);
      scaled.run(step);
    }
    EXPECT_EQ(scaled.weights(), plain.weights());
    EXPECT_EQ(scaled.scale(), 65536);
    EXPECT_EQ(scaled.skipped(), 0);
  }
}

TEST_P(LossScaleTest, AStepThatOverflowsIsLeftOut) {
  Network smooth(*backend, op::OptimizerKind::momentum, true), disturbed(*backend, op::OptimizerKind::momentum, true);
  smooth.run(0);
  disturbed.run(0);
  const std::vector<float> before = disturbed.weights();
  disturbed.run(9, INFINITY);
  EXPECT_EQ(disturbed.weights(), before);
  EXPECT_EQ(disturbed.scale(), 32768);
  EXPECT_EQ(disturbed.skipped(), 1);
  smooth.run(1);
  disturbed.run(1);
  EXPECT_EQ(disturbed.weights(), smooth.weights()) << "the momentum is as it was";
}

// 1e35 times more than 3402 is no float.
TEST_P(LossScaleTest, TheScaleFallsUntilGradientsFit) {
  Graph graph;
  const Tensor w = variable(graph, {}, op::Initializer::constant(0), "w");
  const LossScale scale = add_loss_scale(graph);
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  const auto train = minimize(
      w * 1e35f, [&rule](Tensor) { return rule; }, constant(graph, 1.0f), {}, &scale);
  Session session(graph, *backend);
  for (float expected = 32768; expected >= 2048; expected /= 2) {
    session.run(train);
    EXPECT_EQ(session.value(scale.scale).scalar(), expected);
    EXPECT_EQ(session.value(w).scalar(), 0);
  }
  session.run(train);
  EXPECT_EQ(session.value(scale.scale).scalar(), 2048);
  EXPECT_EQ(session.value(scale.skipped_updates).scalar(), 5);
  EXPECT_EQ(session.value(w).scalar(), -1e35f);
}

TEST_P(LossScaleTest, TheScaleGrowsAfterSoManyGoodUpdates) {
  Graph graph;
  const Tensor w = variable(graph, {3}, op::Initializer::constant(1), "w");
  const LossScale scale = add_loss_scale(graph, 8, 3);
  const op::OptimizerRule rule = optimizer_rule(op::OptimizerKind::sgd);
  const auto train = minimize(
      reduce_sum(square(w)), [&rule](Tensor) { return rule; }, constant(graph, 0.25f), {}, &scale);
  Session session(graph, *backend);
  for (const float expected : {8.0f, 8.0f, 16.0f, 16.0f, 16.0f, 32.0f, 32.0f}) {
    session.run(train);
    EXPECT_EQ(session.value(scale.scale).scalar(), expected);
  }
  EXPECT_EQ(session.value(scale.good_updates).scalar(), 1);
  EXPECT_EQ(session.value(w).f32()[2], 0x1p-7f);
}

// Of the first steps some may be left out: the scale begins high.
TEST_P(LossScaleTest, TrainsInFp16LikeInFp32) {
  if (!backend->is_fast_in(Precision::fp16)) GTEST_SKIP() << "this backend has no fp16";
  Network fp32(*backend, op::OptimizerKind::momentum, false);
  Network fp16(*backend, op::OptimizerKind::momentum, true, Precision::fp16);
  float first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const float expected = fp32.run(1);
    last = fp16.run(1);
    if (step == 0) first = last;
    EXPECT_NEAR(last, expected, 0.03 * first) << "step " << step;
  }
  EXPECT_LT(last, 0.9 * first);
  EXPECT_LE(fp16.skipped(), 2);
}

}  // namespace
}  // namespace trireme
