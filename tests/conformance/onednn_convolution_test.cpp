// Convolution, forward and both backward directions, oneDNN against the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

struct ConvolutionCase {
  const char* name;
  Shape src;
  std::int64_t out;
  op::Window window;
  std::int64_t groups = 1;

  Shape weights() const { return {out, src[1] / groups, window.kernel[0], window.kernel[1]}; }
  Shape dst() const {
    return {src[0], out, op::window_output(window, 0, src[2]), op::window_output(window, 1, src[3])};
  }
  double terms_per_output() const { return static_cast<double>(weights().elements() / out); }
  double terms_per_weight() const { return static_cast<double>(dst()[0] * dst()[2] * dst()[3]); }
};

void PrintTo(const ConvolutionCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnConvolution : public ::testing::TestWithParam<ConvolutionCase> {};

TEST_P(OneDnnConvolution, ForwardAgreesWithTheReference) {
  const ConvolutionCase& c = GetParam();
  const OperationCase operation(op::Convolution{.window = c.window, .groups = c.groups},
                                {random_tensor(c.src, 1), random_tensor(c.weights(), 2)}, {1});
  expect_same(operation, convolution_variants(), {.terms = c.terms_per_output()});
}

TEST_P(OneDnnConvolution, FusedFormsAgreeWithTheReference) {
  const ConvolutionCase& c = GetParam();
  for (const bool bias : {false, true}) {
    for (const bool add : {false, true}) {
      std::vector<HostTensor> values{random_tensor(c.src, 3), random_tensor(c.weights(), 4)};
      if (bias) values.push_back(random_tensor({c.out}, 5));
      if (add) values.push_back(random_tensor(c.dst(), 6));
      const op::Convolution fused{
          .window = c.window, .groups = c.groups, .bias = bias, .add = add, .activation = op::Activation::relu};
      expect_same(OperationCase(fused, std::move(values), {1}), convolution_variants(),
                  {.terms = c.terms_per_output() + 2});
    }
  }
}

TEST_P(OneDnnConvolution, BackwardDataAgreesWithTheReference) {
  const ConvolutionCase& c = GetParam();
  const OperationCase operation(op::ConvolutionBackwardData{.window = c.window, .groups = c.groups, .src_shape = c.src},
                                {random_tensor(c.dst(), 7), random_tensor(c.weights(), 8)}, {1});
  const double terms = c.terms_per_output() * static_cast<double>(c.out) / static_cast<double>(c.src[1]);
  expect_same(operation, convolution_variants(), {.terms = terms});
}

TEST_P(OneDnnConvolution, BackwardWeightsAgreesWithTheReference) {
  const ConvolutionCase& c = GetParam();
  for (const bool bias : {false, true}) {
    const OperationCase operation(
        op::ConvolutionBackwardWeights{
            .window = c.window, .groups = c.groups, .weights_shape = c.weights(), .bias = bias},
        {random_tensor(c.src, 9), random_tensor(c.dst(), 10)});
    expect_same(operation, convolution_variants(), {.terms = c.terms_per_weight()});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnConvolution,
    ::testing::Values(
        ConvolutionCase{"first layer",
                        {2, 3, 23, 19},
                        32,
                        {.kernel = {7, 7}, .stride = {2, 2}, .pad_before = {2, 2}, .pad_after = {3, 3}}},
        ConvolutionCase{
            "one channel", {3, 1, 12, 12}, 32, {.kernel = {5, 5}, .pad_before = {2, 2}, .pad_after = {2, 2}}},
        ConvolutionCase{"3x3", {2, 32, 9, 7}, 48, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}}},
        ConvolutionCase{
            "batch 1, odd channels", {1, 5, 11, 6}, 7, {.kernel = {3, 2}, .pad_before = {0, 1}, .pad_after = {2, 0}}},
        ConvolutionCase{"channels no multiple of 16",
                        {2, 20, 8, 9},
                        37,
                        {.kernel = {3, 3}, .pad_before = {1, 0}, .pad_after = {0, 1}}},
        ConvolutionCase{"many channels", {1, 272, 4, 5}, 144, {.kernel = {1, 1}}},
        ConvolutionCase{"1x1 with stride", {2, 64, 7, 7}, 32, {.kernel = {1, 1}, .stride = {2, 2}}},
        ConvolutionCase{"1x7", {2, 16, 6, 17}, 24, {.kernel = {1, 7}, .pad_before = {0, 3}, .pad_after = {0, 3}}},
        ConvolutionCase{"7x1", {2, 24, 17, 6}, 16, {.kernel = {7, 1}, .pad_before = {3, 0}, .pad_after = {3, 0}}},
        ConvolutionCase{"dilated",
                        {2, 16, 13, 12},
                        16,
                        {.kernel = {3, 3}, .dilation = {2, 3}, .pad_before = {2, 3}, .pad_after = {2, 3}}},
        ConvolutionCase{"11x11 stride 4", {1, 3, 43, 43}, 16, {.kernel = {11, 11}, .stride = {4, 4}}},
        ConvolutionCase{"kernel of the image's size", {2, 17, 5, 5}, 40, {.kernel = {5, 5}}},
        ConvolutionCase{
            "two groups", {2, 32, 8, 8}, 64, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}}, 2},
        ConvolutionCase{
            "odd groups", {2, 15, 7, 6}, 21, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}}, 3},
        ConvolutionCase{
            "depthwise", {2, 32, 9, 9}, 32, {.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}}, 32},
        ConvolutionCase{"depthwise, odd",
                        {1, 19, 6, 7},
                        19,
                        {.kernel = {3, 3}, .stride = {2, 1}, .pad_before = {1, 1}, .pad_after = {1, 1}},
                        19},
        ConvolutionCase{"depthwise with a multiplier", {2, 12, 6, 6}, 24, {.kernel = {3, 3}}, 12}),
    [](const auto& tested) { return "Case" + std::to_string(tested.index); });

// A seed per line, so that a failure can be repeated.
TEST(OneDnnConvolutionRandom, AgreesWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const HostTensor numbers = random_labels(12, 1 << 20, seed);
    const auto pick = [&](std::size_t i, int low, int high) { return low + numbers.i32()[i] % (high - low + 1); };
    const op::Window window{.kernel = {pick(0, 1, 4), pick(1, 1, 4)},
                            .stride = {pick(2, 1, 3), pick(3, 1, 3)},
                            .pad_before = {pick(4, 0, 1), pick(5, 0, 1)},
                            .pad_after = {pick(6, 0, 2), pick(7, 0, 2)}};
    const Shape src{pick(8, 1, 3), pick(9, 1, 40), pick(10, 4, 14), pick(11, 4, 14)};
    const std::int64_t out = 1 + numbers.i32()[0] % 50;
    const Shape weights{out, src[1], window.kernel[0], window.kernel[1]};
    const Shape dst{src[0], out, op::window_output(window, 0, src[2]), op::window_output(window, 1, src[3])};
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto terms = static_cast<double>(src[1] * window.kernel[0] * window.kernel[1]);
    expect_same(OperationCase(op::Convolution{.window = window},
                              {random_tensor(src, seed), random_tensor(weights, seed + 1)}, {1}),
                {.terms = terms});
    expect_same(OperationCase(op::ConvolutionBackwardData{.window = window, .src_shape = src},
                              {random_tensor(dst, seed), random_tensor(weights, seed + 1)}, {1}),
                {.terms = terms * static_cast<double>(out) / static_cast<double>(src[1])});
    expect_same(OperationCase(op::ConvolutionBackwardWeights{.window = window, .weights_shape = weights},
                              {random_tensor(src, seed), random_tensor(dst, seed + 1)}),
                {.terms = static_cast<double>(dst[0] * dst[2] * dst[3])});
  }
}

}  // namespace
}  // namespace trireme::testkit
