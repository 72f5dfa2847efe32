#include <gtest/gtest.h>

#include "tests/backend/bound_kernel.hpp"

namespace trireme {
namespace {

using testkit::BoundKernel;
using testkit::f32;
using testkit::run_kernel;

// Two samples of 1x1x2, three outputs.
HostTensor src() { return f32({2, 1, 1, 2}, {1, 2, 3, 4}); }
HostTensor weights() { return f32({3, 1, 1, 2}, {1, 0, 0, 1, 10, -1}); }

TEST(ReferenceFullyConnected, MultipliesByTheTransposedWeights) {
  EXPECT_EQ(run_kernel(op::FullyConnected{}, {src(), weights()}), (std::vector<float>{1, 2, 8, 3, 4, 26}));
}

TEST(ReferenceFullyConnected, FusesBiasAndRelu) {
  const HostTensor bias = f32({3}, {-2, 1, 0.5});
  EXPECT_EQ(run_kernel(op::FullyConnected{.bias = true}, {src(), weights(), bias}),
            (std::vector<float>{-1, 3, 8.5, 1, 5, 26.5}));
  EXPECT_EQ(run_kernel(op::FullyConnected{.bias = true, .activation = op::Activation::relu}, {src(), weights(), bias}),
            (std::vector<float>{0, 3, 8.5, 1, 5, 26.5}));
}

TEST(ReferenceFullyConnected, Backward) {
  const HostTensor diff_dst = f32({2, 3}, {1, 2, 3, 0, 1, -1});
  EXPECT_EQ(run_kernel(op::FullyConnectedBackwardData{.src_shape = {2, 1, 1, 2}}, {diff_dst, weights()}),
            (std::vector<float>{31, -1, -10, 2}));
  BoundKernel kernel(op::FullyConnectedBackwardWeights{.bias = true}, {src(), diff_dst});
  kernel.run();
  EXPECT_EQ(kernel.output(0), (std::vector<float>{1, 2, 5, 8, 0, 2}));
  EXPECT_EQ(kernel.output(1), (std::vector<float>{1, 3, 2}));
}

TEST(ReferenceMatMul, AllFourTranspositions) {
  const HostTensor a = f32({2, 3}, {1, 2, 3, 4, 5, 6}), a_transposed = f32({3, 2}, {1, 4, 2, 5, 3, 6});
  const HostTensor b = f32({3, 2}, {1, 2, 3, 4, 5, 6}), b_transposed = f32({2, 3}, {1, 3, 5, 2, 4, 6});
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      const auto dst = run_kernel(op::MatMul{.transpose_a = transpose_a, .transpose_b = transpose_b},
                                  {transpose_a ? a_transposed : a, transpose_b ? b_transposed : b});
      EXPECT_EQ(dst, (std::vector<float>{22, 28, 49, 64})) << transpose_a << transpose_b;
    }
  }
}

TEST(ReferenceBias, AddsPerChannelAndFusesRelu) {
  const HostTensor values = f32({1, 2, 1, 2}, {1, -1, 2, -2}), bias = f32({2}, {0.5, 1});
  EXPECT_EQ(run_kernel(op::Bias{}, {values, bias}), (std::vector<float>{1.5, -0.5, 3, -1}));
  EXPECT_EQ(run_kernel(op::Bias{.activation = op::Activation::relu}, {values, bias}),
            (std::vector<float>{1.5, 0, 3, 0}));
  EXPECT_EQ(run_kernel(op::Bias{}, {f32({2, 2}, {1, 2, 3, 4}), bias}), (std::vector<float>{1.5, 3, 3.5, 5}));
}

TEST(ReferenceBias, BackwardSumsOverAllAxesButChannels) {
  EXPECT_EQ(run_kernel(op::BiasBackward{}, {f32({2, 2, 1, 2}, {1, 2, 10, 20, 3, 4, 30, 40})}),
            (std::vector<float>{10, 100}));
}

}  // namespace
}  // namespace trireme
