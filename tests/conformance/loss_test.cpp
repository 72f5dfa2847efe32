// Softmax, cross-entropy and accuracy, each backend against the reference.
#include <gtest/gtest.h>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

const Shape kShapes[] = {{4, 10}, {1, 1001}, {33, 7}, {2, 1}, {64, 300}};

TEST(TestedSoftmax, AgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    expect_same(OperationCase(op::Softmax{}, {random_tensor(shape, 1, -6, 6)}), {.relative = 4e-6});
    expect_same(OperationCase(op::SoftmaxBackward{}, {random_tensor(shape, 2), random_tensor(shape, 3, 0, 1)}),
                {.terms = static_cast<double>(shape[1]) + 4});
  }
  expect_same(OperationCase(op::Softmax{}, {random_tensor({2, 3, 5}, 4)}), {.relative = 4e-6});
}

TEST(TestedSoftmaxCrossEntropy, AgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    const HostTensor labels = random_labels(shape[0], static_cast<std::int32_t>(shape[1]), 1);
    for (const float smoothing : {0.0f, 0.1f}) {
      expect_same(OperationCase(op::SoftmaxCrossEntropy{smoothing}, {random_tensor(shape, 2, -6, 6), labels}),
                  {.terms = 8, .relative = 4e-6});
      expect_same(OperationCase(op::SoftmaxCrossEntropyBackward{smoothing},
                                {random_tensor(shape, 3, 0, 1), labels, random_tensor({shape[0]}, 4)}),
                  {.terms = 4});
    }
  }
}

TEST(TestedSoftmaxCrossEntropy, SurvivesLargeLogits) {
  const HostTensor labels = random_labels(3, 5, 1);
  expect_same(OperationCase(op::SoftmaxCrossEntropy{}, {random_tensor({3, 5}, 2, -900, 900), labels}),
              {.terms = 8, .magnitude = 900});
}

TEST(TestedSoftmaxCrossEntropy, ALabelThatIsNoClassGivesNan) {
  const HostTensor labels({3}, std::vector<std::int32_t>{1, 4, -1});
  expect_same(OperationCase(op::SoftmaxCrossEntropy{}, {random_tensor({3, 4}, 2), labels}), {.terms = 8});
  expect_same(
      OperationCase(op::SoftmaxCrossEntropyBackward{}, {random_tensor({3, 4}, 3), labels, random_tensor({3}, 4)}),
      {.terms = 8});
}

TEST(TestedTopKAccuracy, AgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    const HostTensor labels = random_labels(shape[0], static_cast<std::int32_t>(shape[1]), 1);
    for (const std::int64_t k : {1, 5}) {
      if (k > shape[1]) continue;
      expect_same(OperationCase(op::TopKAccuracy{k}, {random_tensor(shape, 2), labels}), {});
    }
  }
}

}  // namespace
}  // namespace trireme::testkit
