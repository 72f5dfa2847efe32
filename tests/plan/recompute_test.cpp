#include <gtest/gtest.h>

#include <algorithm>

#include "trireme/backend/registry.hpp"
#include "trireme/models/layers.hpp"
#include "trireme/models/model.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

bool is_backward(const Node& node) { return name_of(node.op).find("backward") != std::string_view::npos; }

// Residual blocks with batch norm and a dropout: what backward needs is several times what one block needs.
class RecomputeTest : public testing::Test {
 protected:
  RecomputeTest() {
    LayerBuilder layers(graph);
    layers.use_batch_norm({});
    Tensor x = layers.convolution(images, {.channels = 8, .kernel = {3, 3}});
    for (int block = 0; block < 6; ++block) {
      Tensor inner = layers.convolution(x, {.channels = 8, .kernel = {3, 3}});
      if (block == 1) inner = layers.dropout(inner);
      x = relu(layers.convolution(inner, {.channels = 8, .kernel = {3, 3}, .relu = false}) + x);
      block_outputs.push_back(x);
    }
    logits = layers.fully_connected(layers.spatial_mean(x), 4, false);
    loss = softmax_cross_entropy(logits, labels);
    fetches = minimize(loss, optimizer_rule(op::OptimizerKind::momentum), 0.1f);
    fetches.insert(fetches.begin(), loss);
  }

  PlanGraph fused() const { return fuse_all(prune(graph, fetches), CompileOptions{}.update_bytes); }
  PlanGraph recomputed(Recompute how) const { return recompute(fused(), how); }

  static std::vector<std::string> labels_of(const PlanGraph& plan, bool copies) {
    std::vector<std::string> all;
    for (const Node& node : plan.graph->nodes()) {
      if (plan.copies.contains(node.id) == copies) all.push_back(label_of(node.op));
    }
    return all;
  }
  static std::int64_t count(const std::vector<std::string>& all, const std::string& label) {
    return std::count(all.begin(), all.end(), label);
  }

  Graph graph;
  Tensor images = placeholder(graph, {2, 3, 8, 8}, "images");
  Tensor labels = placeholder(graph, {2}, "labels", DataType::i32);
  std::vector<Tensor> block_outputs;
  Tensor logits, loss;
  std::vector<Tensor> fetches;
};

TEST_F(RecomputeTest, NoneLeavesTheGraphAsItIs) {
  const PlanGraph plan = recomputed(Recompute::none);
  EXPECT_TRUE(plan.copies.empty());
  EXPECT_EQ(labels_of(plan, false), labels_of(fused(), false));
}

TEST_F(RecomputeTest, WhatIsFusedStaysFusedAndInOrder) {
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const PlanGraph plan = recomputed(how);
    EXPECT_FALSE(plan.copies.empty());
    EXPECT_EQ(labels_of(plan, false), labels_of(fused(), false));
  }
}

TEST_F(RecomputeTest, CheapRepeatsNoConvolutionAndFullDoes) {
  EXPECT_EQ(count(labels_of(recomputed(Recompute::cheap), true), "convolution"), 0);
  EXPECT_GT(count(labels_of(recomputed(Recompute::full), true), "convolution"), 0);
}

TEST_F(RecomputeTest, ACopyComesRightBeforeTheBackwardNodeThatNeedsIt) {
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const PlanGraph plan = recomputed(how);
    const auto& nodes = plan.graph->nodes();
    for (const auto& [copy, original] : plan.copies) {
      NodeId next = copy + 1;
      const auto reads = [&](NodeId reader) {
        const auto& inputs = plan.graph->node(reader).inputs;
        return std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) { return input.node == copy; });
      };
      // Behind it only copies, each for the same reason, until someone reads it.
      while (!reads(next) && plan.copies.contains(next)) ++next;
      ASSERT_LT(next, static_cast<NodeId>(nodes.size()));
      EXPECT_TRUE(reads(next)) << plan.graph->node(copy).name << " waits behind " << plan.graph->node(next).name;
      EXPECT_TRUE(plan.copies.contains(next) || is_backward(plan.graph->node(next)));
    }
  }
}

TEST_F(RecomputeTest, OriginalsOfCopiesAreNotReadInBackward) {
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const PlanGraph plan = recomputed(how);
    std::vector<NodeId> dropped;
    for (const auto& [copy, original] : plan.copies) dropped.push_back(original);
    for (const Node& node : plan.graph->nodes()) {
      if (!is_backward(node) && !plan.copies.contains(node.id)) continue;
      for (const Tensor& input : node.inputs) {
        EXPECT_TRUE(input.output != 0 || std::find(dropped.begin(), dropped.end(), input.node) == dropped.end())
            << node.name << " reads " << plan.graph->node(input).name;
      }
    }
  }
}

TEST_F(RecomputeTest, BatchNormIsAppliedAgainWithTheStatisticsItHasFound) {
  const PlanGraph plan = recomputed(Recompute::full);
  int norms = 0;
  for (const auto& [copy, original] : plan.copies) {
    EXPECT_EQ(plan.graph->node(copy).as<op::BatchNorm>(), nullptr);
    const auto* norm = plan.graph->node(copy).as<op::BatchNormInference>();
    if (norm == nullptr) continue;
    ++norms;
    const std::vector<Tensor>& inputs = plan.graph->node(copy).inputs;
    EXPECT_EQ(inputs[3].node, original);
    EXPECT_EQ(inputs[3].output, 1);
    EXPECT_EQ(inputs[4].node, original);
    EXPECT_EQ(inputs[4].output, 2);
  }
  EXPECT_GT(norms, 0);
  EXPECT_GT(count(labels_of(plan, true), "batch_norm_inference+add+relu"), 0);
  EXPECT_EQ(count(labels_of(plan, true), "moving_average"), 0);
}

TEST_F(RecomputeTest, DropoutRepeatsItsMask) {
  const PlanGraph plan = recomputed(Recompute::full);
  int dropouts = 0;
  for (const auto& [copy, original] : plan.copies) {
    const auto* again = plan.graph->node(copy).as<op::Dropout>();
    if (again == nullptr) continue;
    ++dropouts;
    EXPECT_EQ(again->key, plan.graph->node(original).as<op::Dropout>()->key);
  }
  EXPECT_EQ(dropouts, 1);
}

TEST_F(RecomputeTest, WhatIsFetchedIsKept) {
  fetches.insert(fetches.end(), block_outputs.begin(), block_outputs.end());
  const PlanGraph plan = recomputed(Recompute::full);
  for (const auto& [copy, original] : plan.copies) {
    for (const Tensor& fetch : plan.fetches) EXPECT_NE(fetch.node, original);
  }
}

TEST_F(RecomputeTest, WithoutBackwardThereIsNothingToRepeat) {
  fetches = {logits};
  EXPECT_TRUE(recomputed(Recompute::full).copies.empty());
}

// Memory and work of whole networks as planned; nothing is run.
class RecomputedNetwork : public testing::TestWithParam<std::string> {
 protected:
  Program compiled(Recompute how) {
    Graph graph;
    const Model model = build_model(graph, GetParam(), {.batch_size = 2});
    std::vector<Tensor> fetches = minimize(model.loss, optimizer_rule(op::OptimizerKind::sgd), 0.1f);
    fetches.push_back(model.loss);
    VariableLayouts layouts;
    return compile(graph, fetches, *make_backend(default_backend()), {.recompute = how}, layouts);
  }
};

TEST_P(RecomputedNetwork, NeedsLessMemoryForWorkThatIsNotCounted) {
  const Program none = compiled(Recompute::none);
  EXPECT_EQ(none.recomputation.nodes, 0);
  std::int64_t before = none.memory.planned_bytes;
  for (const Recompute how : {Recompute::cheap, Recompute::full}) {
    const Program program = compiled(how);
    EXPECT_LT(program.memory.planned_bytes, before);
    before = program.memory.planned_bytes;
    EXPECT_GT(program.recomputation.nodes, 0);
    EXPECT_EQ(program.recomputation.planned_bytes_without, none.memory.planned_bytes);
    EXPECT_EQ(program.flops(), none.flops());
    EXPECT_GT(program.recomputation.extra_flops, 0);
    // A forward pass is a third of a step.
    EXPECT_LT(program.recomputation.extra_flops, how == Recompute::cheap ? 0.01 : 0.34);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, RecomputedNetwork, testing::Values("resnet50", "vgg16", "googlenet", "inception3"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace trireme
