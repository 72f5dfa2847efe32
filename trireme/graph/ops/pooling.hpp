// Max and average pooling over height and width.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

enum class PoolKind : std::uint8_t {
  max,
  average_inside,          // divides by the cells inside the image (TensorFlow's SAME)
  average_include_padding  // divides by the size of the kernel
};

// inputs: src; outputs: dst. A window that lies wholly in the padding is an error of shape inference.
struct Pool {
  PoolKind kind = PoolKind::max;
  Window window;  // dilation is 1
  static constexpr const char* kName = "pool";
};

// inputs: diff_dst, and for max: src, dst; outputs: diff_src
// Of equal maxima in a window the first in row order gets the gradient. With activation, which max alone can have, src
// is the output of a relu, and the result is the gradient of that relu's input.
struct PoolBackward {
  PoolKind kind = PoolKind::max;
  Window window;
  Shape src_shape;
  Activation activation = Activation::none;  // set by fusing
  static constexpr const char* kName = "pool_backward";
  static constexpr bool kBackward = true;
};

std::vector<TensorType> infer(const Pool& op, Types inputs);
std::vector<TensorType> infer(const PoolBackward& op, Types inputs);
Cost cost(const Pool& op, Types inputs, Types outputs);
Cost cost(const PoolBackward& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const Pool& op, const GradientArgs& args);

}  // namespace trireme::op
