#include <gtest/gtest.h>

#include <algorithm>

#include "tests/graph/expect_error.hpp"
#include "trireme/graph/functions.hpp"
#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

using testkit::expect_bad_input;

class OrderTest : public testing::Test {
 protected:
  Tensor value(const char* name) { return variable(graph, {}, op::Initializer::constant(1), name); }
  std::ptrdiff_t position(Tensor tensor) {
    const auto order = execution_order(graph);
    return std::find(order.begin(), order.end(), tensor.node) - order.begin();
  }
  Graph graph;
};

TEST_F(OrderTest, AnUpdateComesAfterEveryoneWhoReadsTheOldValue) {
  const Tensor w = value("w");
  const Tensor update = graph.add(op::Assign{}, {w, constant(graph, 2.0f)});
  const Tensor reader = square(w);
  EXPECT_GT(position(update), position(reader));
}

TEST_F(OrderTest, AnUpdateComesAsSoonAsNobodyReadsTheOldValue) {
  const Tensor w = value("w");
  const Tensor reader = square(w);
  const Tensor later = square(reader);
  const Tensor update = graph.add(op::Assign{}, {w, reader});
  EXPECT_LT(position(update), position(later));
}

TEST_F(OrderTest, AnUpdateThatReadsAnotherVariableSeesItsOldValue) {
  const Tensor w = value("w"), shadow = value("shadow");
  const Tensor train = graph.add(op::Assign{}, {w, constant(graph, 2.0f)});
  const Tensor average = graph.add(op::MovingAverage{.decay = 0.9f}, {shadow, w});
  EXPECT_LT(position(average), position(train));
}

TEST_F(OrderTest, TwoUpdatesOfOneVariableAreRefused) {
  const Tensor w = value("w");
  graph.add(op::Assign{}, {w, constant(graph, 2.0f)}, "first");
  graph.add(op::Assign{}, {w, constant(graph, 3.0f)}, "second");
  expect_bad_input([&] { execution_order(graph); }, {"'w' is updated twice", "'first'", "'second'"});
}

TEST_F(OrderTest, UpdatesThatReadEachOthersVariablesAreRefused) {
  const Tensor a = value("a"), b = value("b");
  graph.add(op::Assign{}, {a, b}, "a_gets_b");
  graph.add(op::Assign{}, {b, a}, "b_gets_a");
  expect_bad_input([&] { execution_order(graph); }, {"one after the other"});
}

}  // namespace
}  // namespace trireme
