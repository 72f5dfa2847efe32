// Names, scopes and variables of a graph.
#include "trireme/graph/graph.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

TEST(GraphNames, AnEmptyNameBecomesTheOperations) {
  Graph graph;
  const Tensor x = placeholder(graph, {2, 2});
  EXPECT_EQ(graph.node(x).name, "placeholder");
  EXPECT_EQ(graph.node(relu(x)).name, "relu");
  EXPECT_EQ(graph.node(relu6(x)).name, "relu6");
  EXPECT_EQ(graph.node(hard_swish(x)).name, "hard_swish");
  EXPECT_EQ(graph.node(x - x).name, "subtract");
  EXPECT_EQ(graph.node(reduce_mean(x)).name, "reduce_mean");
  EXPECT_EQ(graph.node(matmul(x, x)).name, "matmul");
  EXPECT_EQ(graph.node(max_pool(placeholder(graph, {1, 1, 2, 2}), {})).name, "max_pool");
}

TEST(GraphNames, AreMadeUniqueBySuffix) {
  Graph graph;
  const auto add = [&](const char* name) { return graph.node(placeholder(graph, {1}, name)).name; };
  EXPECT_EQ(add("x"), "x");
  EXPECT_EQ(add("x"), "x_1");
  EXPECT_EQ(add("x_2"), "x_2");
  EXPECT_EQ(add("x"), "x_3") << "x_2 is taken";
  EXPECT_EQ(add("x_1"), "x_1_1");
}

TEST(GraphNames, ScopesNestAndEnd) {
  Graph graph;
  const auto add = [&] { return graph.node(placeholder(graph, {1}, "x")).name; };
  {
    const Graph::Scope stage(graph, "stage1");
    {
      const Graph::Scope block(graph, "block0");
      EXPECT_EQ(add(), "stage1/block0/x");
    }
    EXPECT_EQ(add(), "stage1/x");
  }
  EXPECT_EQ(add(), "x");
  const Graph::Scope again(graph, "stage1");
  EXPECT_EQ(add(), "stage1/x_1");
}

TEST(GraphVariables, InOrderOfCreationAndTrainableOnesApart) {
  Graph graph;
  const Tensor a = variable(graph, {1}, op::Initializer::constant(0), "a");
  const Tensor mean = variable(graph, {1}, op::Initializer::constant(0), "mean", false);
  const Tensor b = variable(graph, {1}, op::Initializer::constant(0), "b");
  EXPECT_EQ(graph.variables(), (std::vector{a.node, mean.node, b.node}));
  EXPECT_EQ(graph.trainable_variables(), (std::vector{a, b}));
}

TEST(GraphNodes, InputsExistBeforeTheirNode) {
  Graph graph;
  const Tensor x = placeholder(graph, {2, 3});
  reduce_sum(square(x + x) * 2.0f);
  for (const Node& node : graph.nodes()) {
    EXPECT_TRUE(std::all_of(node.inputs.begin(), node.inputs.end(), [&](Tensor t) { return t.node < node.id; }));
  }
}

TEST(DropoutKeys, ComeFromTheNameAlone) {
  const auto key_of = [](Graph& graph, Tensor src, const char* name) {
    return graph.node(dropout(src, 0.5f, name)).as<op::Dropout>()->key;
  };
  Graph one, two;
  const Tensor x = placeholder(one, {4});
  placeholder(two, {1}, "something before");
  const Tensor y = placeholder(two, {4});
  const auto first = key_of(one, x, "drop"), second = key_of(one, x, "drop");
  EXPECT_NE(first, 0u);
  EXPECT_NE(first, second) << "the second is named drop_1";
  EXPECT_EQ(key_of(two, y, "drop"), first);
}

}  // namespace
}  // namespace trireme
