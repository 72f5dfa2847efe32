// What minimize() adds to a graph, the rules' constants, and bad numbers.
#include "trireme/optim/optimizer.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

using op::OptimizerKind;
using testkit::expect_bad_input;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

class Minimize : public ::testing::Test {
 protected:
  Graph graph_;
  Tensor w_ = variable(graph_, {2, 3}, op::Initializer::constant(0), "w");
  Tensor statistics_ = variable(graph_, {3}, op::Initializer::constant(0), "statistics", false);
  Tensor b_ = variable(graph_, {3}, op::Initializer::constant(0), "b");
  Tensor loss_ = reduce_mean(square(w_ + b_ + statistics_), {}, false, "loss");
};

TEST_F(Minimize, OneUpdatePerTrainableVariableInOrder) {
  const Tensor rate = placeholder(graph_, {}, "learning_rate");
  const op::OptimizerRule rule = optimizer_rule(OptimizerKind::momentum, 1e-4f);
  const std::vector<Tensor> updates = minimize(loss_, rule, rate);
  ASSERT_EQ(updates.size(), 2u);
  const Node& first = graph_.node(updates[0]);
  EXPECT_EQ(first.name, "update/w");
  ASSERT_NE(first.as<op::ApplyGradients>(), nullptr);
  EXPECT_EQ(first.as<op::ApplyGradients>()->rule, rule);
  ASSERT_EQ(first.inputs.size(), 3u);
  EXPECT_EQ(first.inputs[0], rate);
  EXPECT_EQ(first.inputs[1], w_);
  EXPECT_EQ(first.inputs[2].shape(), w_.shape());
  EXPECT_EQ(graph_.node(updates[1]).inputs[1], b_);
}

TEST_F(Minimize, SideUpdatesFollow) {
  const Tensor side = graph_.add(op::MovingAverage{}, {statistics_, b_});
  graph_.side_updates.push_back(side);
  const std::vector<Tensor> updates = minimize(loss_, optimizer_rule(OptimizerKind::sgd), 0.1f);
  ASSERT_EQ(updates.size(), 3u);
  EXPECT_EQ(updates.back(), side);
}

TEST_F(Minimize, ANumberBecomesAConstant) {
  const std::vector<Tensor> updates = minimize(loss_, optimizer_rule(OptimizerKind::sgd), 0.25f);
  const Node& rate = graph_.node(graph_.node(updates[0]).inputs[0]);
  ASSERT_NE(rate.as<op::Constant>(), nullptr);
  EXPECT_EQ(rate.as<op::Constant>()->value.scalar(), 0.25f);
}

TEST_F(Minimize, ChosenVariablesOnly) {
  const std::vector<Tensor> updates = minimize(loss_, optimizer_rule(OptimizerKind::sgd), constant(graph_, 0.1f), {b_});
  ASSERT_EQ(updates.size(), 1u);
  EXPECT_EQ(graph_.node(updates[0]).inputs[1], b_);
}

TEST_F(Minimize, BadInput) {
  const op::OptimizerRule rule = optimizer_rule(OptimizerKind::sgd);
  for (const float rate : {0.0f, -0.1f, kNan, kInf}) {
    expect_bad_input([&] { minimize(loss_, rule, rate); }, {"the learning rate is", "above 0"});
  }
  expect_bad_input([&] { minimize(loss_, rule, w_); }, {"learning_rate has shape 2x3", "a scalar"});
  expect_bad_input([&] { minimize(loss_, rule, constant(graph_, 0.1f), {loss_}); },
                   {"'loss' (reduce) is not a variable"});
  expect_bad_input([&] { minimize(Tensor{}, rule, 0.1f); }, {"the loss is an empty tensor"});
  variable(graph_, {1}, op::Initializer::constant(0), "unused");
  expect_bad_input([&] { minimize(loss_, rule, 0.1f); }, {"does not depend on 'unused'"});
  Graph empty;
  const Tensor constant_loss = constant(empty, 1.0f);
  expect_bad_input([&] { minimize(constant_loss, rule, 0.1f); }, {"no trainable variable"});
}

TEST(OptimizerRules, Constants) {
  EXPECT_EQ(optimizer_rule(OptimizerKind::momentum).momentum, 0.9f);
  const op::OptimizerRule rmsprop = optimizer_rule(OptimizerKind::rmsprop);
  EXPECT_EQ(rmsprop.decay, 0.9f);
  EXPECT_EQ(rmsprop.momentum, 0.9f);
  EXPECT_EQ(rmsprop.epsilon, 1.0f);
  const op::OptimizerRule adam = optimizer_rule(OptimizerKind::adam);
  EXPECT_EQ(adam.beta1, 0.9f);
  EXPECT_EQ(adam.beta2, 0.999f);
  EXPECT_EQ(adam.epsilon, 1e-8f);
  EXPECT_EQ(optimizer_rule(OptimizerKind::lion).beta2, 0.99f);
}

TEST(OptimizerRules, State) {
  EXPECT_EQ(op::state_count(OptimizerKind::sgd), 0);
  EXPECT_EQ(op::state_count(OptimizerKind::nesterov), 1);
  EXPECT_EQ(op::state_count(OptimizerKind::adam), 2);
  EXPECT_EQ(op::initial_state(OptimizerKind::rmsprop, 0), 1.0f);
  EXPECT_EQ(op::initial_state(OptimizerKind::rmsprop, 1), 0.0f);
  EXPECT_EQ(op::initial_state(OptimizerKind::adam, 0), 0.0f);
}

TEST(OptimizerRules, NumbersOutOfRange) {
  for (const float decay : {-1e-4f, kNan, kInf}) {
    expect_bad_input([&] { optimizer_rule(OptimizerKind::sgd, decay); }, {"weight_decay is", "0 or more"});
  }
  expect_bad_input([] { validate(op::OptimizerRule{.momentum = 1}); }, {"momentum is 1", "less than 1"});
  expect_bad_input([] { validate(op::OptimizerRule{.beta2 = kNan}); }, {"beta2 is nan"});
  expect_bad_input([] { validate(op::OptimizerRule{.epsilon = 0}); }, {"epsilon is 0"});
}

TEST(ParseOptimizer, NamesAndTheListOfThem) {
  EXPECT_EQ(parse_optimizer("nesterov"), OptimizerKind::nesterov);
  for (const op::OptimizerInfo& info : op::kOptimizers) EXPECT_EQ(parse_optimizer(info.name), info.kind);
  expect_bad_input([] { parse_optimizer("luck"); },
                   {"unknown optimizer 'luck'", "sgd, momentum, nesterov, rmsprop, adam, adamw, lion"});
}

TEST(OptimizerTexts, AreMadeOfTheirNumbers) {
  EXPECT_EQ(describe(optimizer_rule(OptimizerKind::sgd)), "sgd, weight decay 0");
  EXPECT_EQ(describe(optimizer_rule(OptimizerKind::momentum, 4e-5f)), "momentum 0.9, weight decay 4e-05");
  EXPECT_EQ(describe(optimizer_rule(OptimizerKind::lion)), "lion, beta1 0.9, beta2 0.99, weight decay 0");
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (number.name != "epsilon") continue;
    EXPECT_EQ(number_help(number), "For rmsprop (default: 1), adam (1e-08), adamw (1e-08)");
  }
}

}  // namespace
}  // namespace trireme
