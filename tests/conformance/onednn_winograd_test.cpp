// Winograd's convolutions, the library's and our own, against the reference: how much more they round, bounded
// (kWinogradRounding), and that --exact leaves them out.
#include "convolution_case.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::testkit {
namespace {

// Runs the case with each Winograd that there is on this CPU.
void check(const SummedOperation& tested) {
  const Tolerance tolerance{.terms = tested.terms};
  for (const std::string name : {"winograd", "own_winograd"}) {
    const int offered = expect_same_forced(tested.operation, blocked_variants(), tolerance, {.force = name});
    if (name == "own_winograd" && onednn::has_avx512()) {
      EXPECT_GT(offered, 0) << name << " is not offered: " << tested.operation.describe();
    }
    EXPECT_EQ(expect_same_forced(tested.operation, blocked_variants(), tolerance, {.exact = true, .force = name}), 0);
  }
}

class OneDnnWinograd : public ConvolutionTest {};

TEST_P(OneDnnWinograd, Forward) {
  for (const SummedOperation& form : forward_forms(GetParam())) check(form);
}

TEST_P(OneDnnWinograd, BackwardData) { check(backward_data(GetParam())); }

TEST_P(OneDnnWinograd, BackwardWeights) {
  for (const SummedOperation& form : backward_weights_forms(GetParam())) check(form);
}

ConvolutionCase winograd(const char* name, const Shape& src, std::int64_t out, int threads = 2, std::int64_t pad = 1) {
  return {.name = name,
          .src = src,
          .out = out,
          .window = {.kernel = {3, 3}, .pad_before = {pad, pad}, .pad_after = {pad, pad}},
          .threads = threads};
}

// Channels that leave lanes of a block empty, extents that leave a part of a tile, one tile, few channels with many
// tiles and the other way round: the threads share tiles in the one and channels in the other.
INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnWinograd,
    ::testing::Values(winograd("square", {2, 32, 12, 12}, 32), winograd("odd_extents", {3, 64, 13, 9}, 32),
                      winograd("one_image", {1, 16, 28, 28}, 64), winograd("small_image", {4, 128, 7, 7}, 128),
                      winograd("no_padding", {2, 32, 15, 11}, 48, 2, 0), winograd("odd_channels", {2, 20, 10, 11}, 37),
                      winograd("one_tile", {1, 24, 3, 4}, 40), winograd("one_result", {1, 16, 3, 3}, 16, 2, 0),
                      winograd("one_thread", {2, 48, 17, 18}, 80, 1), winograd("many_threads", {1, 96, 5, 6}, 144, 7),
                      winograd("many_channels", {1, 304, 6, 5}, 304, 3)),
    case_name);

}  // namespace
}  // namespace trireme::testkit
