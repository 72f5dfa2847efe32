// Reductions and the L2 loss, each backend against the reference.
#include <gtest/gtest.h>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

TEST(TestedReduce, EveryKindOverEveryChoiceOfAxesAgreesWithTheReference) {
  const std::vector<int> axes_of_images[] = {{}, {2, 3}, {0, 2, 3}, {1}, {0}, {1, 3}, {0, 1, 2, 3}};
  for (const op::ReduceKind kind : {op::ReduceKind::sum, op::ReduceKind::mean, op::ReduceKind::max}) {
    for (const bool keep_dims : {false, true}) {
      for (const Shape& shape : {Shape{2, 32, 5, 7}, {1, 19, 3, 4}, {2, 3, 40, 33}, {3, 140, 2, 2}}) {
        for (const std::vector<int>& axes : axes_of_images) {
          // Below zero throughout: the padding's zeros would be the maximum.
          expect_same(OperationCase(op::Reduce{kind, axes, keep_dims}, {random_tensor(shape, 1, -2, -1)}),
                      {.terms = static_cast<double>(shape.elements()) / 64 + 8});
        }
      }
      expect_same(OperationCase(op::Reduce{kind, {1}, keep_dims}, {random_tensor({4, 9}, 2)}), {.terms = 9});
      expect_same(OperationCase(op::Reduce{kind, {}, keep_dims}, {random_tensor({70000}, 3)}), {.terms = 1000});
      expect_same(OperationCase(op::Reduce{kind, {2}, keep_dims}, {random_tensor({2, 5, 33}, 4)}), {.terms = 33});
    }
  }
}

TEST(TestedL2Loss, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{64, 19, 3, 3}, {2, 16, 3, 3}, {50001}, {}}) {
    expect_same(OperationCase(op::L2Loss{.scale = 0.25f}, {random_tensor(shape, 1)}), {.terms = 8});
  }
}

}  // namespace
}  // namespace trireme::testkit
