// Winograd's convolution against the reference: how much more it rounds, bounded, and that --exact leaves it out.
//
// F(4x4, 3x3) computes tiles of 4x4 outputs by transforms whose coefficients reach 8 in the data's and 1/24 .. 1 in the
// weights': intermediate values are up to some tens of times larger than the results, and the rounding of fp32 grows
// with them. Lavin and Gray report errors one to two orders of magnitude above the direct sum's. The bound here is ten
// times that of the direct convolution.
#include <gtest/gtest.h>

#include "operation_check.hpp"
#include "trireme/backend/registry.hpp"

namespace trireme::testkit {
namespace {

constexpr double kWinogradRounding = 10;

struct WinogradCase {
  const char* name;
  Shape src;
  std::int64_t out;
};
void PrintTo(const WinogradCase& c, std::ostream* stream) { *stream << c.name; }

class OneDnnWinograd : public ::testing::TestWithParam<WinogradCase> {
 protected:
  static constexpr op::Window kWindow{.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}};

  void SetUp() override {
    if (onednn_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  }

  // Runs the case with Winograd forced; skips where the library has none for this CPU.
  void check(const OperationCase& operation, double terms) {
    const auto winograd = make_backend("onednn", {.force = "winograd"});
    const auto exact = make_backend("onednn", {.exact = true, .force = "winograd"});
    const Variant variant{.name = "blocked", .activations = blocked(16)};
    KernelRun run(*winograd, operation, variant);
    EXPECT_EQ(KernelRun(*exact, operation, variant).choice().implementation.find("wino"), std::string::npos);
    if (run.choice().implementation.find("wino") == std::string::npos) {
      GTEST_SKIP() << "no Winograd here: " << run.choice().implementation;
    }
    KernelRun oracle(*make_backend("reference"), operation, {.name = "reference"});
    run.run();
    oracle.run();
    const Tolerance tolerance{.terms = kWinogradRounding * terms};
    for (std::size_t i = 0; i < oracle.choice().outputs.size(); ++i) {
      EXPECT_EQ(difference(run.output(i), oracle.output(i), tolerance), "");
      EXPECT_TRUE(run.padding_is_zero(i));
    }
  }

  const WinogradCase& c() const { return GetParam(); }
  Shape weights() const { return {c().out, c().src[1], 3, 3}; }
  Shape dst() const { return {c().src[0], c().out, c().src[2], c().src[3]}; }
};

TEST_P(OneDnnWinograd, Forward) {
  check(
      OperationCase(op::Convolution{.window = kWindow}, {random_tensor(c().src, 1), random_tensor(weights(), 2)}, {1}),
      9.0 * static_cast<double>(c().src[1]));
}

TEST_P(OneDnnWinograd, ForwardWithBiasAndRelu) {
  check(OperationCase(op::Convolution{.window = kWindow, .bias = true, .activation = op::Activation::relu},
                      {random_tensor(c().src, 1), random_tensor(weights(), 2), random_tensor({c().out}, 3)}, {1}),
        9.0 * static_cast<double>(c().src[1]));
}

TEST_P(OneDnnWinograd, BackwardData) {
  check(OperationCase(op::ConvolutionBackwardData{.window = kWindow, .src_shape = c().src},
                      {random_tensor(dst(), 4), random_tensor(weights(), 5)}, {1}),
        9.0 * static_cast<double>(c().out));
}

TEST_P(OneDnnWinograd, BackwardWeights) {
  check(OperationCase(op::ConvolutionBackwardWeights{.window = kWindow, .weights_shape = weights()},
                      {random_tensor(c().src, 6), random_tensor(dst(), 7)}),
        static_cast<double>(c().src[0] * c().src[2] * c().src[3]));
}

INSTANTIATE_TEST_SUITE_P(Shapes, OneDnnWinograd,
                         ::testing::Values(WinogradCase{"square", {2, 32, 12, 12}, 32},
                                           WinogradCase{"odd_extents", {3, 64, 13, 9}, 32},
                                           WinogradCase{"one_image", {1, 16, 28, 28}, 64},
                                           WinogradCase{"small_image", {4, 128, 7, 7}, 128}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace trireme::testkit
