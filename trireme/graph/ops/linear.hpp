// Fully connected layers and matrix products.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// inputs: src: batch x d..., weights: out x d... (the same trailing extents, so that a convolution's output needs no
// flattening, in any layout), [bias: out]
// outputs: dst: batch x out = activation(src·weightsᵀ + bias)
struct FullyConnected {
  bool bias = false;
  Activation activation = Activation::none;
  static constexpr const char* kName = "fully_connected";
};

// inputs: diff_dst, weights; outputs: diff_src
struct FullyConnectedBackwardData {
  Shape src_shape;
  static constexpr const char* kName = "fully_connected_backward_data";
  static constexpr bool kBackward = true;
};

// inputs: src, diff_dst; outputs: diff_weights, [diff_bias]
struct FullyConnectedBackwardWeights {
  bool bias = false;
  static constexpr const char* kName = "fully_connected_backward_weights";
  static constexpr bool kBackward = true;
};

// inputs: a: m x k (k x m if transposed), b: k x n (n x k if transposed); outputs: m x n
struct MatMul {
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr const char* kName = "matmul";
};

// inputs: src: rank >= 2, bias: channels (axis 1); outputs: activation(src + bias)
struct Bias {
  Activation activation = Activation::none;
  static constexpr const char* kName = "bias";
  static constexpr double kFlops = 1;
};

// inputs: diff_dst; outputs: diff_bias, the sum over all axes but axis 1
struct BiasBackward {
  static constexpr const char* kName = "bias_backward";
  static constexpr double kFlops = 1;
  static constexpr bool kBackward = true;
};

std::vector<TensorType> infer(const FullyConnected& op, Types inputs);
std::vector<TensorType> infer(const FullyConnectedBackwardData& op, Types inputs);
std::vector<TensorType> infer(const FullyConnectedBackwardWeights& op, Types inputs);
std::vector<TensorType> infer(const MatMul& op, Types inputs);
std::vector<TensorType> infer(const Bias& op, Types inputs);
std::vector<TensorType> infer(const BiasBackward& op, Types inputs);
Cost cost(const FullyConnected& op, Types inputs, Types outputs);
Cost cost(const FullyConnectedBackwardData& op, Types inputs, Types outputs);
Cost cost(const FullyConnectedBackwardWeights& op, Types inputs, Types outputs);
Cost cost(const MatMul& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const FullyConnected& op, const GradientArgs& args);
std::vector<Tensor> gradient(const MatMul& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Bias& op, const GradientArgs& args);

}  // namespace trireme::op
