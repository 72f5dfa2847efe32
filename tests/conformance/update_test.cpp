// Operations that write variables, each backend against the reference.
#include <gtest/gtest.h>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

using op::OptimizerKind;

// Several updates in a row, so that the state that each leaves is checked too.
void expect_same_updates(const OperationCase& operation, const Variant& variant, int updates,
                         const Tolerance& tolerance) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
  KernelRun tested(*backend, operation, variant);
  for (int step = 0; step < updates; ++step) {
    const RunContext context{.step = static_cast<std::uint64_t>(step)};
    reference.run(context);
    tested.run(context);
    for (std::size_t i = 0; i < operation.values().size(); ++i) {
      if (!operation.is_variable(i)) continue;
      EXPECT_EQ(difference(tested.input(i), reference.input(i), tolerance), "")
          << operation.describe() << " | input " << i << " after " << step + 1;
    }
    const auto* apply = operation.node().as<op::ApplyGradients>();
    if (apply == nullptr) continue;
    for (std::size_t pair = 0; 2 * pair + 1 < operation.values().size(); ++pair) {
      for (int s = 0; s < op::state_count(apply->rule.kind); ++s) {
        EXPECT_EQ(difference(tested.state(pair, static_cast<std::size_t>(s)),
                             reference.state(pair, static_cast<std::size_t>(s)), tolerance),
                  "")
            << operation.describe() << " | state " << s << " of pair " << pair << " after " << step + 1;
      }
    }
  }
}

TEST(TestedApplyGradients, EveryRuleAgreesWithTheReferenceOverThreeSteps) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::momentum, OptimizerKind::nesterov,
                                   OptimizerKind::rmsprop, OptimizerKind::adam}) {
    for (const float weight_decay : {0.0f, 0.01f}) {
      op::OptimizerRule rule{.kind = kind, .weight_decay = weight_decay, .momentum = 0.8f};
      if (kind == OptimizerKind::adam) rule.epsilon = 1e-8f;
      // Variables of all sizes in one update: a scalar, some channels, more than one piece.
      std::vector<HostTensor> values{HostTensor(0.1f)};
      for (const Shape& shape : {Shape{}, Shape{19}, Shape{33, 7, 3, 3}, Shape{200, 170}}) {
        values.push_back(random_tensor(shape, values.size()));
        values.push_back(random_tensor(shape, values.size() + 100));
      }
      expect_same_updates(OperationCase(op::ApplyGradients{rule}, std::move(values)), {.name = "plain"}, 3,
                          {.terms = 8, .magnitude = 4});
    }
  }
}

TEST(TestedMovingAverage, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{19}, {20000}, {}}) {
    expect_same_updates(OperationCase(op::MovingAverage{.decay = 0.9f, .scale = 1.1f},
                                      {random_tensor(shape, 1), random_tensor(shape, 2)}),
                        {.name = "plain"}, 3, {.terms = 4});
  }
}

TEST(TestedAssign, CopiesTheValue) {
  expect_same_updates(OperationCase(op::Assign{}, {random_tensor({33, 7}, 1), random_tensor({33, 7}, 2)}),
                      {.name = "plain"}, 1, {.terms = 0});
}

}  // namespace
}  // namespace trireme::testkit
