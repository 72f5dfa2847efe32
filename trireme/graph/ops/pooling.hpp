// Max and average pooling over height and width.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

enum class PoolKind : std::uint8_t {
  max,
  average_inside,          // divides by the cells inside the image (TensorFlow's SAME)
  average_include_padding  // divides by the kernel size
};

// inputs: src; outputs: dst. Shape inference rejects a window entirely in the padding.
struct Pool {
  PoolKind kind = PoolKind::max;
  Window window;  // dilation is 1
  static constexpr const char* kName = "pool";
};

// inputs: diff_dst, and for max: src, dst; outputs: diff_src. The first of equal maxima in row order gets the gradient.
// With activation (max only), src is a relu's output and the result the gradient of the relu's input.
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
