#include <gtest/gtest.h>

#include <algorithm>

#include "trireme/graph/functions.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

std::vector<std::string> labels(const PlanGraph& plan) {
  std::vector<std::string> all;
  for (const Node& node : plan.graph->nodes()) {
    if (!node.inputs.empty()) all.push_back(label_of(node.op));
  }
  return all;
}

std::int64_t count(const PlanGraph& plan, const std::string& label) {
  const auto all = labels(plan);
  return std::count(all.begin(), all.end(), label);
}

PlanGraph fused(const Graph& graph, std::vector<Tensor> fetches) { return fuse_all(prune(graph, fetches), 4 << 20); }

class FuseTest : public testing::Test {
 protected:
  Tensor weights(std::int64_t out, std::int64_t in) {
    return variable(graph, {out, in, 1, 1}, op::Initializer::constant(0.1f));
  }
  Tensor channels(std::int64_t n, bool trainable = true) {
    return variable(graph, {n}, op::Initializer::constant(1), "channels", trainable);
  }
  Tensor batch_norm(Tensor src) {
    const std::int64_t n = src.shape()[1];
    return graph.add(op::BatchNorm{}, {src, channels(n), channels(n)});
  }

  Graph graph;
  Tensor x = placeholder(graph, {2, 4, 3, 3}, "x");
};

TEST_F(FuseTest, PruneKeepsOnlyWhatTheFetchesNeed) {
  const Tensor used = relu(x);
  square(x);
  const PlanGraph plan = prune(graph, std::vector{used});
  EXPECT_EQ(labels(plan), std::vector<std::string>{"relu"});
  EXPECT_EQ(plan.origin.at(plan.graph->nodes()[0].id), x.node);
}

TEST_F(FuseTest, ConvolutionTakesBiasAndRelu) {
  const Tensor y = relu(add_bias(convolution(x, weights(4, 4)), channels(4)));
  EXPECT_EQ(labels(fused(graph, {y})), std::vector<std::string>{"convolution+bias+relu"});
}

TEST_F(FuseTest, ConvolutionTakesSumAndRelu) {
  const Tensor shortcut = square(x);
  const Tensor y = relu(shortcut + convolution(convolution(shortcut, weights(4, 4)), weights(4, 4)));
  EXPECT_EQ(labels(fused(graph, {y})), (std::vector<std::string>{"square", "convolution", "convolution+add+relu"}));
}

TEST_F(FuseTest, AConvolutionAddsOnlyIntoMemoryThatNobodyNeedsAnyMore) {
  EXPECT_EQ(count(fused(graph, {x + convolution(x, weights(4, 4))}), "convolution+add"), 0) << "x is fed";
  const Tensor kept = square(x);
  const Tensor y = kept + convolution(square(kept), weights(4, 4));
  EXPECT_EQ(count(fused(graph, {y * kept}), "convolution+add"), 0) << "the addend is read later";
}

TEST_F(FuseTest, ASumThatBroadcastsIsNotFused) {
  const Tensor y = convolution(x, weights(4, 4)) + constant(graph, 1.0f);
  EXPECT_EQ(labels(fused(graph, {y})), (std::vector<std::string>{"convolution", "add"}));
}

TEST_F(FuseTest, AFetchedTensorIsNotFusedAway) {
  const Tensor before = convolution(x, weights(4, 4));
  const Tensor after = relu(before);
  EXPECT_EQ(labels(fused(graph, {before, after})), (std::vector<std::string>{"convolution", "relu"}));
}

TEST_F(FuseTest, ATensorWithTwoReadersIsNotFusedAway) {
  const Tensor y = convolution(x, weights(4, 4));
  EXPECT_EQ(count(fused(graph, {relu(y), square(y)}), "convolution+relu"), 0);
}

TEST_F(FuseTest, BatchNormTakesSumAndReluAndKeepsItsStatistics) {
  const Tensor norm = batch_norm(x);
  const Tensor y = relu(norm + x);
  const PlanGraph plan = fused(graph, {y, graph.output(norm.node, 1)});
  EXPECT_EQ(labels(plan), std::vector<std::string>{"batch_norm+add+relu"});
  EXPECT_EQ(plan.fetches[0].node, plan.fetches[1].node);
  EXPECT_EQ(plan.fetches[1].output, 1);
}

TEST_F(FuseTest, OfTwoBatchNormsOneTakesTheSum) {
  const Tensor y = relu(batch_norm(x) + batch_norm(square(x)));
  const PlanGraph plan = fused(graph, {y});
  EXPECT_EQ(count(plan, "batch_norm+add+relu"), 1);
  EXPECT_EQ(count(plan, "batch_norm"), 1);
}

TEST_F(FuseTest, ASumWhoseOtherSideNeedsTheStatisticsIsNotFused) {
  const Tensor norm = batch_norm(x);
  const Tensor mean = reshape(graph.output(norm.node, 1), {1, 4, 1, 1});
  const Tensor y = norm + (x - mean);
  const PlanGraph plan = fused(graph, {y});
  EXPECT_EQ(count(plan, "batch_norm+add"), 0);
  EXPECT_EQ(count(plan, "batch_norm"), 1);
}

TEST_F(FuseTest, BackwardOfAResidualBlockFusesMaskAndSum) {
  const Tensor first = relu(batch_norm(convolution(x, weights(4, 4))));
  const Tensor second = relu(batch_norm(convolution(first, weights(4, 4))) + first);
  const PlanGraph plan = fused(graph, minimize(reduce_sum(second), optimizer_rule(op::OptimizerKind::sgd), 0.1f));
  EXPECT_EQ(count(plan, "batch_norm_backward+add+relu"), 1);
  EXPECT_EQ(count(plan, "batch_norm_backward+sum+relu"), 1);
  EXPECT_EQ(count(plan, "relu_backward"), 0);
}

TEST_F(FuseTest, TheMaskComesFromSrcOnlyWhereTheBackendAsksAndNothingWasAdded) {
  const Tensor first = relu(batch_norm(convolution(x, weights(4, 4))));
  const Tensor second = relu(batch_norm(convolution(first, weights(4, 4))) + first);
  const std::vector<Tensor> step = minimize(reduce_sum(second), optimizer_rule(op::OptimizerKind::sgd), 0.1f);
  for (const bool asks : {false, true}) {
    const PlanGraph plan = fuse_all(prune(graph, step), 4 << 20, {}, asks);
    int masked = 0;
    for (const Node& node : plan.graph->nodes()) {
      const auto* backward = node.as<op::BatchNormBackward>();
      if (backward == nullptr) continue;
      ++masked;
      EXPECT_EQ(backward->mask_from_src, asks && !backward->add);
      if (backward->mask_from_src) {
        EXPECT_EQ(node.inputs.back().shape(), Shape{4});
      }
    }
    EXPECT_EQ(masked, 2);
  }
}

TEST_F(FuseTest, GradientsThatMeetAtAResidualBlockAreSummedByTheBatchNormBeforeIt) {
  const Tensor first = relu(batch_norm(convolution(x, weights(4, 4))));
  const Tensor second = relu(batch_norm(convolution(first, weights(4, 4))) + first);
  const Tensor third = relu(batch_norm(convolution(second, weights(4, 4))) + second);
  const PlanGraph plan = fused(graph, minimize(reduce_sum(third), optimizer_rule(op::OptimizerKind::sgd), 0.1f));
  EXPECT_EQ(count(plan, "batch_norm_backward+add+relu"), 1) << "of the last block";
  EXPECT_EQ(count(plan, "batch_norm_backward+sum+add+relu"), 1);
  EXPECT_EQ(count(plan, "batch_norm_backward+sum+relu"), 1);
  EXPECT_EQ(count(plan, "add"), 0);
}

TEST_F(FuseTest, BackwardOfAMaxPoolTakesTheMaskOfTheReluBeforeIt) {
  const Tensor y = max_pool(relu(batch_norm(convolution(x, weights(4, 4)))), {.kernel = {2, 2}});
  const PlanGraph plan = fused(graph, minimize(reduce_sum(y), optimizer_rule(op::OptimizerKind::sgd), 0.1f));
  EXPECT_EQ(count(plan, "max_pool_backward+relu"), 1);
  EXPECT_EQ(count(plan, "relu_backward"), 0);
  EXPECT_EQ(count(plan, "batch_norm_backward"), 1) << "the mask is applied once";
}

TEST_F(FuseTest, BackwardOfAMaxPoolTakesNoMaskOfAnotherTensor) {
  const Tensor hidden = relu(convolution(x, weights(4, 4)));
  const auto rule = optimizer_rule(op::OptimizerKind::sgd);
  const Tensor dropped = max_pool(dropout(hidden, 0.5f), {.kernel = {2, 2}});
  EXPECT_EQ(count(fused(graph, minimize(reduce_sum(dropped), rule, 0.1f)), "max_pool_backward+relu"), 0);
  const Tensor shared = reduce_sum(max_pool(hidden, {.kernel = {2, 2}})) + reduce_sum(hidden);
  EXPECT_EQ(count(fused(graph, minimize(shared, rule, 0.1f)), "max_pool_backward+relu"), 0) << "a sum comes between";
  const Tensor average = average_pool(hidden, {.kernel = {2, 2}});
  EXPECT_EQ(count(fused(graph, minimize(reduce_sum(average), rule, 0.1f)), "relu_backward"), 1);
}

TEST_F(FuseTest, BatchNormFoldsIntoTheConvolutionOnlyInInference) {
  const Tensor y = graph.add(op::BatchNormInference{}, {convolution(x, weights(4, 4)), channels(4), channels(4),
                                                        channels(4, false), channels(4, false)});
  const PlanGraph plan = fused(graph, {relu(y)});
  EXPECT_EQ(count(plan, "convolution+bias+relu"), 1);
  EXPECT_EQ(count(plan, "batch_norm_inference"), 0);
}

TEST_F(FuseTest, UpdatesJoinOverTheArenaInTheOrderOfBackward) {
  const Tensor y = convolution(convolution(x, weights(4, 4)), weights(4, 4));
  const PlanGraph plan = fused(graph, minimize(reduce_sum(y), optimizer_rule(op::OptimizerKind::momentum), 0.1f));
  ASSERT_EQ(count(plan, "apply_momentum"), 1);
  const Node& update = plan.graph->node(plan.fetches[0]);
  EXPECT_EQ(update.inputs.size(), 5u);
  EXPECT_GT(plan.origin.at(update.inputs[1].node), plan.origin.at(update.inputs[3].node))
      << "the last variable comes first";
}

TEST_F(FuseTest, AveragesOfOneDecayJoinWhereTheirValuesAreComputed) {
  const auto average = [this](float decay, float scale, Tensor value) {
    return graph.add(op::MovingAverage{.decay = decay, .scales = {scale}}, {channels(4, false), value});
  };
  const Tensor norm = batch_norm(x);
  const Tensor mean = graph.output(norm.node, 1), variance = graph.output(norm.node, 2);
  const Tensor first = average(0.9f, 1, mean), second = average(0.9f, 2, variance);
  const Tensor other_decay = average(0.5f, 1, mean), of_variable = average(0.9f, 1, channels(4));
  const PlanGraph plan = fused(graph, {norm, first, second, other_decay, of_variable});
  EXPECT_EQ(count(plan, "moving_average"), 3);
  EXPECT_EQ(plan.fetches[1].node, plan.fetches[2].node);
  const Node& joined = plan.graph->node(plan.fetches[1]);
  EXPECT_EQ(joined.as<op::MovingAverage>()->scales, (std::vector<float>{1, 2}));
  ASSERT_EQ(joined.inputs.size(), 4u);
  EXPECT_EQ(plan.origin.at(joined.inputs[0].node), graph.node(first).inputs[0].node);
  EXPECT_EQ(joined.inputs[1].output, 1);
  EXPECT_EQ(plan.origin.at(joined.inputs[2].node), graph.node(second).inputs[0].node);
  EXPECT_EQ(joined.inputs[3].output, 2);
}

}  // namespace
}  // namespace trireme
