// Our own 1x1 convolution against the reference, in the three directions. Its sums are those of a direct convolution,
// so it is held to the same bound and is there under --exact.
#include <gtest/gtest.h>
#include <omp.h>

#include "operation_check.hpp"
#include "trireme/backend/registry.hpp"

namespace trireme::testkit {
namespace {

struct PointwiseCase {
  const char* name;
  Shape src;
  std::int64_t out;
  op::Pair stride{1, 1};
  int threads = 2;
};
void PrintTo(const PointwiseCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnPointwise : public ::testing::TestWithParam<PointwiseCase> {
 protected:
  void SetUp() override {
    if (onednn_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
    omp_set_num_threads(c().threads);
  }
  void TearDown() override { omp_set_num_threads(threads_before_); }

  void check(const OperationCase& operation, double terms) {
    KernelRun oracle(*make_backend("reference"), operation, {.name = "reference"});
    oracle.run();
    const auto backend = make_backend("onednn", {.exact = true, .force = "own_1x1"});
    for (const auto& [variables_open, wish_plain] : {std::pair{true, false}, {false, false}, {true, true}}) {
      const Variant variant{
          .name = "own_1x1", .activations = blocked(16), .variables_open = variables_open, .wish_plain = wish_plain};
      const KernelRun chosen(*backend, operation, variant);
      if (chosen.choice().implementation.rfind("own_1x1", 0) != 0) GTEST_SKIP() << "not on this CPU";
      for (int in_place = -1; in_place < static_cast<int>(chosen.choice().in_place.size()); ++in_place) {
        KernelRun run(*backend, operation, variant, in_place);
        run.run();
        for (std::size_t i = 0; i < oracle.choice().outputs.size(); ++i) {
          EXPECT_EQ(difference(run.output(i), oracle.output(i), {.terms = terms}), "");
          EXPECT_TRUE(run.padding_is_zero(i));
        }
      }
    }
  }

  const PointwiseCase& c() const { return GetParam(); }
  op::Window window() const { return {.kernel = {1, 1}, .stride = c().stride}; }
  Shape weights() const { return {c().out, c().src[1], 1, 1}; }
  Shape dst() const {
    return {c().src[0], c().out, (c().src[2] - 1) / c().stride[0] + 1, (c().src[3] - 1) / c().stride[1] + 1};
  }
  double inner() const { return static_cast<double>(c().src[1]); }
  double pixels() const { return static_cast<double>(dst()[0] * dst()[2] * dst()[3]); }

 private:
  const int threads_before_ = omp_get_max_threads();
};

TEST_P(OneDnnPointwise, Forward) {
  check(
      OperationCase(op::Convolution{.window = window()}, {random_tensor(c().src, 1), random_tensor(weights(), 2)}, {1}),
      inner());
}

TEST_P(OneDnnPointwise, ForwardWithBiasAndRelu) {
  check(OperationCase(op::Convolution{.window = window(), .bias = true, .activation = op::Activation::relu},
                      {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3)}, {1}),
        inner());
}

TEST_P(OneDnnPointwise, ForwardWithAddend) {
  check(OperationCase(op::Convolution{.window = window(), .add = true},
                      {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor(dst(), 4)}, {1}),
        inner());
}

TEST_P(OneDnnPointwise, ForwardWithBiasAddendAndRelu) {
  check(
      OperationCase(op::Convolution{.window = window(), .bias = true, .add = true, .activation = op::Activation::relu},
                    {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3),
                     random_tensor(dst(), 4)},
                    {1}),
      inner());
}

TEST_P(OneDnnPointwise, BackwardData) {
  check(OperationCase(op::ConvolutionBackwardData{.window = window(), .src_shape = c().src},
                      {random_tensor(dst(), 4), random_tensor(weights(), 5)}, {1}),
        static_cast<double>(c().out));
}

TEST_P(OneDnnPointwise, BackwardWeights) {
  check(OperationCase(op::ConvolutionBackwardWeights{.window = window(), .weights_shape = weights()},
                      {random_tensor(c().src, 6), random_tensor(dst(), 7)}),
        pixels());
}

TEST_P(OneDnnPointwise, BackwardWeightsWithBias) {
  check(OperationCase(op::ConvolutionBackwardWeights{.window = window(), .weights_shape = weights(), .bias = true},
                      {random_tensor(c().src, 6), random_tensor(dst(), 7)}),
        pixels());
}

// Results of more than 32 MiB, which are written around the cache.
class OneDnnPointwiseLarge : public OneDnnPointwise {};

TEST_P(OneDnnPointwiseLarge, Forward) {
  check(OperationCase(op::Convolution{.window = {.kernel = {1, 1}}, .bias = true, .activation = op::Activation::relu},
                      {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3)}, {1}),
        inner());
}

TEST_P(OneDnnPointwiseLarge, BackwardDataWithStride) {
  const Shape weights{c().src[1], c().out, 1, 1};
  const Shape diff_src{c().src[0], c().out, c().src[2], c().src[3]};
  const Shape diff_dst{c().src[0], c().src[1], (c().src[2] + 1) / 2, (c().src[3] + 1) / 2};
  check(
      OperationCase(op::ConvolutionBackwardData{.window = {.kernel = {1, 1}, .stride = {2, 2}}, .src_shape = diff_src},
                    {random_tensor(diff_dst, 4), random_tensor(weights, 5)}, {1}),
      inner());
}

INSTANTIATE_TEST_SUITE_P(Shapes, OneDnnPointwiseLarge,
                         ::testing::Values(PointwiseCase{"large_result", {1, 4, 301, 303}, 96}),
                         [](const auto& test) { return std::string(test.param.name); });

// Channels that leave lanes of a block or a vector of a panel empty, rows that do not fill a tile, sums in several
// passes, weights beyond a core's cache, more threads than work along one side; strides that leave rows and columns
// over at the end.
INSTANTIATE_TEST_SUITE_P(Shapes, OneDnnPointwise,
                         ::testing::Values(PointwiseCase{"square", {2, 32, 14, 14}, 64},
                                           PointwiseCase{"odd_extents", {3, 48, 13, 9}, 80},
                                           PointwiseCase{"odd_channels", {2, 20, 7, 5}, 37},
                                           PointwiseCase{"one_pixel", {3, 24, 1, 1}, 40},
                                           PointwiseCase{"one_image_one_thread", {1, 64, 17, 18}, 96, {1, 1}, 1},
                                           PointwiseCase{"many_pixels", {2, 16, 40, 41}, 33, {1, 1}, 3},
                                           PointwiseCase{"many_threads", {1, 96, 5, 6}, 144, {1, 1}, 16},
                                           PointwiseCase{"several_passes", {2, 1040, 4, 5}, 48},
                                           PointwiseCase{"many_weights", {1, 528, 5, 6}, 560, {1, 1}, 3},
                                           PointwiseCase{"stride", {2, 32, 14, 14}, 48, {2, 2}},
                                           PointwiseCase{"stride_odd", {3, 20, 13, 8}, 37, {2, 3}, 3},
                                           PointwiseCase{"stride_rows", {1, 48, 9, 7}, 32, {3, 1}, 1},
                                           PointwiseCase{"stride_several_passes", {1, 544, 5, 6}, 592, {2, 2}, 16}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace trireme::testkit
