// Batch norm (with its fused forms) and LRN, each backend against the reference.
#include <gtest/gtest.h>
#include <omp.h>

#include <cstring>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

using op::Activation;

// Odd sizes, several panels and strips per channel, channels that are no multiple of a block, more than a panel of
// them.
const Shape kShapes[] = {{2, 32, 5, 7},  {1, 19, 9, 3},   {3, 200, 2, 2}, {16, 10},
                         {5, 3, 50, 61}, {2, 70, 30, 31}, {4, 16, 1, 1}};

// The forms to check with a shape: gamma, add and activation on and off; for large ones all on and all off.
template <typename Op>
std::vector<Op> forms(const Shape& shape) {
  if (shape.elements() > 20000)
    return {{.epsilon = 1e-3f, .gamma = false}, {.epsilon = 1e-3f, .add = true, .activation = Activation::relu}};
  std::vector<Op> result;
  for (const bool gamma : {false, true}) {
    for (const bool add : {false, true}) {
      for (const Activation activation : {Activation::none, Activation::relu}) {
        result.push_back({.epsilon = 1e-3f, .gamma = gamma, .add = add, .activation = activation});
      }
    }
  }
  return result;
}

double per_channel(const Shape& shape) { return static_cast<double>(shape.elements() / shape[1]); }

TEST(TestedBatchNorm, TrainingAgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    for (const op::BatchNorm& form : forms<op::BatchNorm>(shape)) {
      std::vector<HostTensor> values{random_tensor(shape, 1, -2, 3)};
      if (form.gamma) values.push_back(random_tensor({shape[1]}, 2, 0.5f, 2));
      values.push_back(random_tensor({shape[1]}, 3));
      if (form.add) values.push_back(random_tensor(shape, 4));
      // Each element is a few operations on values of a few units; the statistics are exact to float by construction.
      expect_same(OperationCase(form, std::move(values)), {.terms = 8, .magnitude = 4});
    }
  }
}

TEST(TestedBatchNorm, BackwardAgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    for (op::BatchNormBackward form : forms<op::BatchNormBackward>(shape)) {
      for (const bool sum : {false, true}) {
        form.sum = sum;
        std::vector<HostTensor> values{random_tensor(shape, 1, -2, 3), random_tensor({shape[1]}, 2, 0.3f, 0.7f),
                                       random_tensor({shape[1]}, 3, 1.5f, 2.5f)};
        if (form.gamma) values.push_back(random_tensor({shape[1]}, 4, 0.5f, 2));
        values.push_back(random_tensor(shape, 5));
        if (sum) values.push_back(random_tensor(shape, 7));
        if (form.activation == Activation::relu) values.push_back(random_tensor(shape, 6));
        expect_same(OperationCase(form, std::move(values)), {.terms = 8 + per_channel(shape), .magnitude = 2});
      }
    }
  }
}

// The forward operation of a backend that masks from src and its backward operation have to agree on what is positive.
TEST(TestedBatchNorm, TheMaskFromSrcIsThatOfDst) {
  const auto backend = tested_backend();
  if (!backend || !backend->masks_from_src()) GTEST_SKIP() << "this backend masks by dst";
  for (const Shape& shape : kShapes) {
    const HostTensor src = random_tensor(shape, 1, -2, 3), gamma = random_tensor({shape[1]}, 2, 0.5f, 2);
    const HostTensor beta = random_tensor({shape[1]}, 3), diff_dst = random_tensor(shape, 5);
    for (const Variant& variant : layout_variants()) {
      const OperationCase forward(op::BatchNorm{.activation = Activation::relu}, {src, gamma, beta});
      KernelRun normalized(*backend, forward, variant);
      normalized.run();
      const HostTensor mean = normalized.output(1), variance = normalized.output(2);
      op::BatchNormBackward form{.activation = Activation::relu};
      const OperationCase by_dst(form, {src, mean, variance, gamma, diff_dst, normalized.output(0)});
      form.mask_from_src = true;
      const OperationCase by_src(form, {src, mean, variance, gamma, diff_dst, beta});
      KernelRun expected(*backend, by_dst, variant), actual(*backend, by_src, variant);
      expected.run();
      actual.run();
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_EQ(difference(actual.output(i), expected.output(i), {}), "") << by_src.describe() << " | " << i;
      KernelRun reference(*make_backend("reference"), by_src, {.name = "reference"});
      reference.run();
      EXPECT_EQ(difference(actual.output(0), reference.output(0), {.terms = 8 + per_channel(shape), .magnitude = 2}),
                "")
          << by_src.describe() << " | " << variant.name;
    }
  }
}

TEST(TestedBatchNorm, InferenceAgreesWithTheReference) {
  for (const Shape& shape : kShapes) {
    for (const op::BatchNormInference& form : forms<op::BatchNormInference>(shape)) {
      std::vector<HostTensor> values{random_tensor(shape, 1, -2, 3)};
      if (form.gamma) values.push_back(random_tensor({shape[1]}, 2, 0.5f, 2));
      values.push_back(random_tensor({shape[1]}, 3));
      values.push_back(random_tensor({shape[1]}, 4));
      values.push_back(random_tensor({shape[1]}, 5, 0.1f, 3));
      if (form.add) values.push_back(random_tensor(shape, 6));
      expect_same(OperationCase(form, std::move(values)), {.terms = 8, .magnitude = 8});
    }
  }
}

// With a mean a thousand times the deviation, one-pass formulas lose the variance altogether.
TEST(TestedBatchNorm, VarianceSurvivesALargeMean) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  const Shape shape{4, 18, 31, 33};
  const OperationCase operation(
      op::BatchNorm{.epsilon = 1e-5f},
      {random_tensor(shape, 1, 999, 1001), random_tensor({18}, 2, 1, 1.5f), random_tensor({18}, 3)});
  KernelRun reference(*make_backend("reference"), operation, {.name = "reference"});
  reference.run();
  for (const Variant& variant : layout_variants()) {
    KernelRun run(*backend, operation, variant);
    run.run();
    EXPECT_EQ(difference(run.output(2), reference.output(2), {.relative = 1e-5}), "") << variant.name;
    EXPECT_EQ(difference(run.output(1), reference.output(1), {}), "") << variant.name;
  }
}

TEST(TestedBatchNorm, ResultsDoNotDependOnTheNumberOfThreads) {
  const auto backend = tested_backend();
  if (!backend) GTEST_SKIP() << "nothing to test: see tested_backend()";
  const Shape shape{6, 40, 23, 29};
  const OperationCase forward(op::BatchNorm{},
                              {random_tensor(shape, 1), random_tensor({40}, 2), random_tensor({40}, 3)});
  const OperationCase backward(op::BatchNormBackward{},
                               {random_tensor(shape, 1), random_tensor({40}, 2), random_tensor({40}, 3, 1, 2),
                                random_tensor({40}, 4), random_tensor(shape, 5)});
  const int threads = omp_get_max_threads();
  for (const OperationCase* operation : {&forward, &backward}) {
    for (const Variant& variant : layout_variants()) {
      std::vector<HostTensor> first;
      for (const int count : {1, 2, 3, 5}) {
        omp_set_num_threads(count);
        KernelRun run(*backend, *operation, variant);
        run.run();
        omp_set_num_threads(threads);
        for (std::size_t i = 0; i < operation->node().outputs.size(); ++i) {
          const HostTensor value = run.output(i);
          if (count == 1) {
            first.push_back(value);
          } else {
            EXPECT_EQ(std::memcmp(value.data(), first[i].data(), value.f32().size_bytes()), 0)
                << operation->describe() << " | " << variant.name << " | output " << i << " with " << count
                << " threads";
          }
        }
      }
    }
  }
}

TEST(TestedLrn, AgreesWithTheReference) {
  for (const Shape& shape : {Shape{2, 32, 5, 7}, {1, 19, 4, 3}, {2, 64, 6, 6}, {3, 5, 9, 2}}) {
    for (const op::Lrn& lrn : {op::Lrn{}, op::Lrn{.size = 3, .alpha = 0.5f, .beta = 0.75f, .k = 2},
                               op::Lrn{.size = 5, .alpha = 1, .beta = 0.5f}}) {
      expect_same(OperationCase(lrn, {random_tensor(shape, 1, -2, 2)}), {.terms = 10, .magnitude = 4});
      const op::LrnBackward backward{.size = lrn.size, .alpha = lrn.alpha, .beta = lrn.beta, .k = lrn.k};
      expect_same(OperationCase(backward, {random_tensor(shape, 1, -2, 2), random_tensor(shape, 2)}),
                  {.terms = 20, .magnitude = 8});
    }
  }
}

}  // namespace
}  // namespace trireme::testkit
