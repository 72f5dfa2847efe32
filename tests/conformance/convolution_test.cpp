// Convolution, forward and both backward directions, each backend against the reference.
#include <fmt/format.h>

#include "convolution_case.hpp"

namespace trireme::testkit {
namespace {

class TestedConvolution : public ConvolutionTest {};

TEST_P(TestedConvolution, ForwardAgreesWithTheReference) {
  for (const auto& [operation, terms] : forward_forms(GetParam())) {
    expect_same(operation, convolution_variants(), {.terms = terms});
  }
}

TEST_P(TestedConvolution, BackwardDataAgreesWithTheReference) {
  const auto [operation, terms] = backward_data(GetParam());
  expect_same(operation, convolution_variants(), {.terms = terms});
}

TEST_P(TestedConvolution, BackwardWeightsAgreesWithTheReference) {
  for (const auto& [operation, terms] : backward_weights_forms(GetParam())) {
    expect_same(operation, convolution_variants(), {.terms = terms});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, TestedConvolution,
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
        ConvolutionCase{"1x1 of one pixel", {3, 24, 1, 1}, 40, {.kernel = {1, 1}}},
        ConvolutionCase{"1x1 with odd strides", {3, 20, 13, 8}, 37, {.kernel = {1, 1}, .stride = {2, 3}}},
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
TEST(TestedConvolutionRandom, AgreesWithTheReference) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const HostTensor numbers = random_labels(12, 1 << 20, seed);
    const auto pick = [&](std::size_t i, int low, int high) { return low + numbers.i32()[i] % (high - low + 1); };
    const op::Window window{.kernel = {pick(0, 1, 4), pick(1, 1, 4)},
                            .stride = {pick(2, 1, 3), pick(3, 1, 3)},
                            .pad_before = {pick(4, 0, 1), pick(5, 0, 1)},
                            .pad_after = {pick(6, 0, 2), pick(7, 0, 2)}};
    const Shape src{pick(8, 1, 3), pick(9, 1, 40), pick(10, 4, 14), pick(11, 4, 14)};
    const ConvolutionCase c{.name = "random", .src = src, .out = 1 + numbers.i32()[0] % 50, .window = window};
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const auto check = [](const SummedOperation& tested) { expect_same(tested.operation, {.terms = tested.terms}); };
    check(forward(c, false, false, op::Activation::none));
    check(backward_data(c));
    check(backward_weights(c, false));
  }
}

}  // namespace
}  // namespace trireme::testkit
