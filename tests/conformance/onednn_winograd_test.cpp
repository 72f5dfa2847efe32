// Winograd's convolutions, the library's and our own, against the reference: how much more they round, bounded, and
// that --exact leaves them out.
//
// F(4x4, 3x3) computes tiles of 4x4 outputs by transforms whose coefficients reach 8 in the data's and 1/24 .. 1 in the
// weights': intermediate values are up to some tens of times larger than the results, and the rounding of fp32 grows
// with them. Lavin and Gray report errors one to two orders of magnitude above the direct sum's. The bound here is ten
// times that of the direct convolution.
#include <gtest/gtest.h>
#include <omp.h>

#include "operation_check.hpp"
#include "trireme/backend/onednn/vectors.hpp"
#include "trireme/backend/registry.hpp"

namespace trireme::testkit {
namespace {

constexpr double kWinogradRounding = 10;

struct WinogradCase {
  const char* name;
  Shape src;
  std::int64_t out;
  std::int64_t pad = 1;
  int threads = 2;
};
void PrintTo(const WinogradCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnWinograd : public ::testing::TestWithParam<WinogradCase> {
 protected:
  void SetUp() override {
    if (onednn_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
    omp_set_num_threads(c().threads);
  }
  void TearDown() override { omp_set_num_threads(threads_before_); }

  // Runs the case with each Winograd that there is on this CPU.
  void check(const OperationCase& operation, double terms) {
    KernelRun oracle(*make_backend("reference"), operation, {.name = "reference"});
    oracle.run();
    for (const std::string name : {"winograd", "own_winograd"}) {
      int found = 0;
      const auto exact = make_backend("onednn", {.exact = true, .force = name});
      const KernelRun without(*exact, operation, {.name = name, .activations = blocked(16)});
      EXPECT_EQ(without.choice().implementation.find("wino"), std::string::npos);
      for (const auto& [variables_open, wish_plain] : {std::pair{true, false}, {false, false}, {true, true}}) {
        const Variant variant{
            .name = name, .activations = blocked(16), .variables_open = variables_open, .wish_plain = wish_plain};
        found += check(operation, variant, oracle, {.terms = kWinogradRounding * terms});
      }
      if (onednn::has_avx512()) {
        EXPECT_TRUE(found > 0 || name == "winograd") << name << " is not offered";
      }
    }
  }

  const WinogradCase& c() const { return GetParam(); }
  op::Window window() const {
    return {.kernel = {3, 3}, .pad_before = {c().pad, c().pad}, .pad_after = {c().pad, c().pad}};
  }
  Shape weights() const { return {c().out, c().src[1], 3, 3}; }
  Shape dst() const { return {c().src[0], c().out, c().src[2] + 2 * c().pad - 2, c().src[3] + 2 * c().pad - 2}; }

 private:
  // The name of the variant is that of the alternative; false where there is none of that name.
  static bool check(const OperationCase& operation, const Variant& variant, const KernelRun& oracle,
                    const Tolerance& tolerance) {
    const auto backend = make_backend("onednn", {.force = variant.name});
    const KernelRun chosen(*backend, operation, variant);
    const std::string implementation = chosen.choice().implementation;
    const std::string expected = variant.name == "winograd" ? "jit_wino" : "own_wino";
    if (implementation.rfind(expected, 0) != 0) return false;
    for (int in_place = -1; in_place < static_cast<int>(chosen.choice().in_place.size()); ++in_place) {
      KernelRun run(*backend, operation, variant, in_place);
      run.run();
      for (std::size_t i = 0; i < oracle.choice().outputs.size(); ++i) {
        EXPECT_EQ(difference(run.output(i), oracle.output(i), tolerance), "") << implementation;
        EXPECT_TRUE(run.padding_is_zero(i)) << implementation;
      }
    }
    return true;
  }

  const int threads_before_ = omp_get_max_threads();
};

TEST_P(OneDnnWinograd, Forward) {
  check(
      OperationCase(op::Convolution{.window = window()}, {random_tensor(c().src, 1), random_tensor(weights(), 2)}, {1}),
      9.0 * static_cast<double>(c().src[1]));
}

TEST_P(OneDnnWinograd, ForwardWithBiasAndRelu) {
  check(OperationCase(op::Convolution{.window = window(), .bias = true, .activation = op::Activation::relu},
                      {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3)}, {1}),
        9.0 * static_cast<double>(c().src[1]));
}

TEST_P(OneDnnWinograd, ForwardWithBiasAndAddend) {
  check(
      OperationCase(op::Convolution{.window = window(), .bias = true, .add = true, .activation = op::Activation::relu},
                    {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3),
                     random_tensor(dst(), 4)},
                    {1}),
      9.0 * static_cast<double>(c().src[1]));
}

TEST_P(OneDnnWinograd, BackwardData) {
  check(OperationCase(op::ConvolutionBackwardData{.window = window(), .src_shape = c().src},
                      {random_tensor(dst(), 4), random_tensor(weights(), 5)}, {1}),
        9.0 * static_cast<double>(c().out));
}

TEST_P(OneDnnWinograd, BackwardWeights) {
  check(OperationCase(op::ConvolutionBackwardWeights{.window = window(), .weights_shape = weights()},
                      {random_tensor(c().src, 6), random_tensor(dst(), 7)}),
        static_cast<double>(c().src[0] * c().src[2] * c().src[3]));
}

TEST_P(OneDnnWinograd, BackwardWeightsWithBias) {
  check(OperationCase(op::ConvolutionBackwardWeights{.window = window(), .weights_shape = weights(), .bias = true},
                      {random_tensor(c().src, 6), random_tensor(dst(), 7)}),
        static_cast<double>(dst()[0] * dst()[2] * dst()[3]));
}

// Channels that leave lanes of a block empty, extents that leave a part of a tile, one tile, few channels with many
// tiles and the other way round: the threads share tiles in the one and channels in the other.
INSTANTIATE_TEST_SUITE_P(
    Shapes, OneDnnWinograd,
    ::testing::Values(WinogradCase{"square", {2, 32, 12, 12}, 32}, WinogradCase{"odd_extents", {3, 64, 13, 9}, 32},
                      WinogradCase{"one_image", {1, 16, 28, 28}, 64}, WinogradCase{"small_image", {4, 128, 7, 7}, 128},
                      WinogradCase{"no_padding", {2, 32, 15, 11}, 48, 0},
                      WinogradCase{"odd_channels", {2, 20, 10, 11}, 37}, WinogradCase{"one_tile", {1, 24, 3, 4}, 40},
                      WinogradCase{"one_result", {1, 16, 3, 3}, 16, 0},
                      WinogradCase{"one_thread", {2, 48, 17, 18}, 80, 1, 1},
                      WinogradCase{"many_threads", {1, 96, 5, 6}, 144, 1, 7},
                      WinogradCase{"many_channels", {1, 304, 6, 5}, 304, 1, 3}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace trireme::testkit
