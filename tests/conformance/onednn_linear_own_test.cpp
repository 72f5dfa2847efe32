// Fully connected layers by the backend's own loops, forced, against the reference; and that they are offered where
// they apply and nowhere else.
#include <gtest/gtest.h>

#include "operation_check.hpp"
#include "trireme/backend/onednn/vectors.hpp"
#include "trireme/backend/registry.hpp"

namespace trireme::testkit {
namespace {

struct LinearCase {
  const char* name;
  Shape src;
  std::int64_t out;

  Shape weights() const {
    Shape shape = src;
    shape[0] = out;
    return shape;
  }
  Shape dst() const { return {src[0], out}; }
  double inner() const { return static_cast<double>(src.elements() / src[0]); }
};
void PrintTo(const LinearCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnOwnLinear : public ::testing::TestWithParam<LinearCase> {
 protected:
  void SetUp() override {
    if (onednn_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  }

  // Every layout that the loops take; at least one of them must be taken, else nothing would be tested.
  void check(const OperationCase& operation, double terms) {
    const auto own = make_backend("onednn", {.force = "own"});
    KernelRun oracle(*make_backend("reference"), operation, {.name = "reference"});
    oracle.run();
    int taken = 0;
    for (const Variant& variant : convolution_variants()) {
      KernelRun run(*own, operation, variant);
      if (run.choice().implementation != "own") continue;
      ++taken;
      run.run();
      for (std::size_t i = 0; i < oracle.choice().outputs.size(); ++i) {
        EXPECT_EQ(difference(run.output(i), oracle.output(i), {.terms = terms}), "")
            << operation.describe() << " | variant " << variant.name << " | output " << i;
        EXPECT_TRUE(run.padding_is_zero(i)) << operation.describe() << " | variant " << variant.name;
      }
    }
    if (!onednn::has_avx2() && !onednn::has_avx512()) GTEST_SKIP() << "no own loops for this CPU";
    EXPECT_GT(taken, 0) << operation.describe();
  }

  const LinearCase& c() const { return GetParam(); }
};

TEST_P(OneDnnOwnLinear, Forward) {
  for (const bool bias : {false, true}) {
    for (const op::Activation activation : {op::Activation::none, op::Activation::relu}) {
      std::vector<HostTensor> values{random_tensor(c().src, 1), random_tensor(c().weights(), 2)};
      if (bias) values.push_back(random_tensor({c().out}, 3));
      check(OperationCase(op::FullyConnected{.bias = bias, .activation = activation}, std::move(values), {1}),
            c().inner() + 1);
    }
  }
}

TEST_P(OneDnnOwnLinear, BackwardData) {
  check(OperationCase(op::FullyConnectedBackwardData{c().src},
                      {random_tensor(c().dst(), 4), random_tensor(c().weights(), 5)}, {1}),
        static_cast<double>(c().out));
}

TEST_P(OneDnnOwnLinear, BackwardWeights) {
  for (const bool bias : {false, true}) {
    check(OperationCase(op::FullyConnectedBackwardWeights{bias},
                        {random_tensor(c().src, 6), random_tensor(c().dst(), 7)}),
          static_cast<double>(c().src[0]));
  }
}

// Batches around the tiles' extents, rows and columns that no tile divides.
INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnOwnLinear,
    ::testing::Values(LinearCase{"one_sample_one_row", {1, 16}, 1}, LinearCase{"tiles_exactly", {8, 96}, 48},
                      LinearCase{"three_samples", {3, 80}, 49}, LinearCase{"nine_samples", {9, 1040}, 50},
                      LinearCase{"many_samples", {32, 64}, 107}, LinearCase{"several_pieces", {6, 2064}, 97},
                      LinearCase{"image", {5, 32, 3, 4}, 21}, LinearCase{"padded_channels", {2, 19, 4, 4}, 18},
                      LinearCase{"around_the_cache", {2, 2080}, 4100}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(OneDnnOwnLinearChoice, TakesNoLargeBatchesAndNoPartialVectors) {
  if (onednn_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  const auto own = make_backend("onednn", {.force = "own"});
  for (const Shape& src : {Shape{33, 64}, Shape{4, 70}}) {
    const OperationCase operation(op::FullyConnected{}, {random_tensor(src, 1), random_tensor({10, src[1]}, 2)}, {1});
    EXPECT_NE(KernelRun(*own, operation, {.name = "plain"}).choice().implementation, "own") << to_string(src);
  }
}

TEST(OneDnnOwnLinearChoice, IsTheLibrarysWithoutTuning) {
  const auto backend = onednn_backend();
  if (backend == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  const OperationCase operation(op::FullyConnected{}, {random_tensor({4, 64}, 1), random_tensor({10, 64}, 2)}, {1});
  EXPECT_NE(KernelRun(*backend, operation, {.name = "plain"}).choice().implementation, "own");
}

}  // namespace
}  // namespace trireme::testkit
