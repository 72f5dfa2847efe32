#include <gtest/gtest.h>

#include <cmath>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using testkit::BoundKernel;
using testkit::expect_close;
using testkit::f32;
using testkit::i32;
using testkit::run_kernel;

const float kLog3 = std::log(3.0f);  // logits 0 and log 3 have the probabilities 1/4 and 3/4

TEST(ReferenceSoftmax, OverTheLastAxisWithoutOverflow) {
  expect_close(run_kernel(op::Softmax{}, {f32({2, 2}, {0, kLog3, 1000, 1000})}), {0.25, 0.75, 0.5, 0.5});
}

TEST(ReferenceSoftmax, Backward) {
  // dst·(diff − sum(dst·diff)), the sum being 1/4·4 + 3/4·8 = 7
  expect_close(run_kernel(op::SoftmaxBackward{}, {f32({1, 2}, {4, 8}), f32({1, 2}, {0.25, 0.75})}), {-0.75, 0.75});
}

TEST(ReferenceSoftmaxCrossEntropy, LossesAndProbabilities) {
  BoundKernel kernel(op::SoftmaxCrossEntropy{}, {f32({2, 2}, {0, kLog3, 1000, 0}), i32({2}, {1, 1})});
  kernel.run();
  expect_close(kernel.output(0), {-std::log(0.75f), 1000});
  expect_close(kernel.output(1), {0.25, 0.75, 1, 0});
}

// Smoothing 0.2 over two classes makes the target 0.1 and 0.9.
TEST(ReferenceSoftmaxCrossEntropy, SmoothsTheLabel) {
  const auto losses =
      run_kernel(op::SoftmaxCrossEntropy{.label_smoothing = 0.2f}, {f32({1, 2}, {0, kLog3}), i32({1}, {1})});
  expect_close(losses, {-0.1f * std::log(0.25f) - 0.9f * std::log(0.75f)});
}

TEST(ReferenceSoftmaxCrossEntropy, Backward) {
  const HostTensor probabilities = f32({1, 2}, {0.25, 0.75}), label = i32({1}, {1}), diff_loss = f32({1}, {2});
  expect_close(run_kernel(op::SoftmaxCrossEntropyBackward{}, {probabilities, label, diff_loss}), {0.5, -0.5});
  expect_close(run_kernel(op::SoftmaxCrossEntropyBackward{.label_smoothing = 0.2f}, {probabilities, label, diff_loss}),
               {0.3f, -0.3f});
}

TEST(ReferenceSoftmaxCrossEntropy, ALabelThatIsNoClassGivesNaNForItsSampleAlone) {
  const HostTensor logits = f32({3, 2}, {0, kLog3, 0, kLog3, 0, kLog3}), labels = i32({3}, {-1, 1, 2});
  BoundKernel forward(op::SoftmaxCrossEntropy{}, {logits, labels});
  forward.run();
  EXPECT_TRUE(std::isnan(forward.output(0)[0]));
  EXPECT_NEAR(forward.output(0)[1], -std::log(0.75f), 1e-6);
  EXPECT_TRUE(std::isnan(forward.output(0)[2]));

  const auto diff_logits =
      run_kernel(op::SoftmaxCrossEntropyBackward{}, {forward.output_tensor(1), labels, f32({3}, {1, 1, 1})});
  for (const std::size_t i : {0, 1, 4, 5}) EXPECT_TRUE(std::isnan(diff_logits[i])) << i;
  expect_close({diff_logits[2], diff_logits[3]}, {0.25, -0.25});
}

TEST(ReferenceTopKAccuracy, CountsLabelsAmongTheLargestLogits) {
  const HostTensor logits = f32({4, 3}, {1, 2, 3, 1, 2, 3, 1, 2, 3, 5, 5, 5});
  const HostTensor labels = i32({4}, {2, 1, 0, 2});  // first, second, third, and first with others
  EXPECT_EQ(run_kernel(op::TopKAccuracy{.k = 1}, {logits, labels}), (std::vector<float>{0.5}));
  EXPECT_EQ(run_kernel(op::TopKAccuracy{.k = 2}, {logits, labels}), (std::vector<float>{0.75}));
  EXPECT_EQ(run_kernel(op::TopKAccuracy{.k = 3}, {logits, labels}), (std::vector<float>{1}));
}

TEST(ReferenceTopKAccuracy, WrongLabelsAndNaNAreNeverRight) {
  const float nan = std::nanf("");
  EXPECT_EQ(
      run_kernel(op::TopKAccuracy{.k = 1}, {f32({4, 2}, {1, 2, 1, 2, nan, 2, nan, nan}), i32({4}, {-1, 2, 0, 1})}),
      (std::vector<float>{0}));
}

}  // namespace
}  // namespace trireme
