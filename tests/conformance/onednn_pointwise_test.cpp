// Our own 1x1 convolution against the reference, in the three directions. Its sums are those of a direct convolution,
// so it is held to the same bound and is there under --exact.
#include "convolution_case.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::testkit {
namespace {

void check(const SummedOperation& tested) {
  if (!onednn::has_avx512()) GTEST_SKIP() << "this CPU has no AVX-512";
  const int offered = expect_same_forced(tested.operation, blocked_variants(), {.terms = tested.terms},
                                         {.exact = true, .force = "own_1x1"});
  EXPECT_GT(offered, 0) << "own_1x1 is not offered: " << tested.operation.describe();
}

class OneDnnPointwise : public ConvolutionTest {};

TEST_P(OneDnnPointwise, Forward) {
  for (const SummedOperation& form : forward_forms(GetParam())) check(form);
}

TEST_P(OneDnnPointwise, BackwardData) { check(backward_data(GetParam())); }

TEST_P(OneDnnPointwise, BackwardWeights) {
  for (const SummedOperation& form : backward_weights_forms(GetParam())) check(form);
}

ConvolutionCase pointwise(const char* name, const Shape& src, std::int64_t out, int threads = 2,
                          op::Pair stride = {1, 1}) {
  return {.name = name, .src = src, .out = out, .window = {.kernel = {1, 1}, .stride = stride}, .threads = threads};
}

// Channels that leave lanes of a block or a vector of a panel empty, rows that do not fill a tile, sums in several
// passes, weights beyond a core's cache, more threads than work along one side; strides that leave rows and columns
// over at the end.
INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnPointwise,
    ::testing::Values(
        pointwise("square", {2, 32, 14, 14}, 64), pointwise("odd_extents", {3, 48, 13, 9}, 80),
        pointwise("odd_channels", {2, 20, 7, 5}, 37), pointwise("one_pixel", {3, 24, 1, 1}, 40),
        pointwise("one_image_one_thread", {1, 64, 17, 18}, 96, 1), pointwise("many_pixels", {2, 16, 40, 41}, 33, 3),
        pointwise("many_threads", {1, 96, 5, 6}, 144, 16), pointwise("several_passes", {2, 1040, 4, 5}, 48),
        pointwise("many_weights", {1, 528, 5, 6}, 560, 3), pointwise("stride", {2, 32, 14, 14}, 48, 2, {2, 2}),
        pointwise("stride_odd", {3, 20, 13, 8}, 37, 3, {2, 3}), pointwise("stride_rows", {1, 48, 9, 7}, 32, 1, {3, 1}),
        pointwise("stride_several_passes", {1, 544, 5, 6}, 592, 16, {2, 2})),
    case_name);

// Results of more than 32 MiB, which are written around the cache.
TEST(OneDnnPointwiseLarge, Forward) {
  if (tested_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  check(forward(pointwise("large result", {1, 4, 301, 303}, 96), true, false, op::Activation::relu));
}

TEST(OneDnnPointwiseLarge, BackwardDataWithStride) {
  if (tested_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  check(backward_data(pointwise("large result", {1, 96, 301, 303}, 4, 2, {2, 2})));
}

}  // namespace
}  // namespace trireme::testkit
