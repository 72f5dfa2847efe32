// Convolution over batch x channels x height x width, with its two backward operations.
// Weights have shape out x in/groups x kernel height x kernel width.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// inputs: src, weights, [bias: out], [addend: like dst]; outputs: dst = activation(conv(src, weights) + bias + addend).
// Fusing sets add and activation; the gradient rule refuses those (gradients are taken before fusing).
struct Convolution {
  Window window;  // kernel must equal the weights' extents
  std::int64_t groups = 1;
  bool bias = false;
  bool add = false;
  Activation activation = Activation::none;
  static constexpr const char* kName = "convolution";
};

// inputs: diff_dst, weights; outputs: diff_src
struct ConvolutionBackwardData {
  Window window;
  std::int64_t groups = 1;
  Shape src_shape;
  static constexpr const char* kName = "convolution_backward_data";
  static constexpr bool kBackward = true;
};

// inputs: src, diff_dst; outputs: diff_weights, [diff_bias]
struct ConvolutionBackwardWeights {
  Window window;
  std::int64_t groups = 1;
  Shape weights_shape;
  bool bias = false;
  static constexpr const char* kName = "convolution_backward_weights";
  static constexpr bool kBackward = true;
};

std::vector<TensorType> infer(const Convolution& op, Types inputs);
std::vector<TensorType> infer(const ConvolutionBackwardData& op, Types inputs);
std::vector<TensorType> infer(const ConvolutionBackwardWeights& op, Types inputs);
Cost cost(const Convolution& op, Types inputs, Types outputs);
Cost cost(const ConvolutionBackwardData& op, Types inputs, Types outputs);
Cost cost(const ConvolutionBackwardWeights& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const Convolution& op, const GradientArgs& args);

}  // namespace trireme::op
