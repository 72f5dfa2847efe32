// Operations that move elements without computing: concat, split, slice, pad, reshape.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// inputs: one or more, equal except along axis; outputs: dst
struct Concat {
  int axis = 1;
  static constexpr const char* kName = "concat";
};

// inputs: src; outputs: one per size; the sizes add up to the extent of axis
struct Split {
  int axis = 1;
  std::vector<std::int64_t> sizes;
  static constexpr const char* kName = "split";
};

// inputs: src; outputs: dst with before + extent + after along each axis
struct Pad {
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  float value = 0;
  static constexpr const char* kName = "pad";
};

// inputs: src; outputs: the box of the given size at begin
struct Slice {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> size;
  static constexpr const char* kName = "slice";
};

// inputs: src; outputs: the same elements in row-major order with another shape
struct Reshape {
  Shape shape;
  static constexpr const char* kName = "reshape";
};

std::vector<TensorType> infer(const Concat& op, Types inputs);
std::vector<TensorType> infer(const Split& op, Types inputs);
std::vector<TensorType> infer(const Pad& op, Types inputs);
std::vector<TensorType> infer(const Slice& op, Types inputs);
std::vector<TensorType> infer(const Reshape& op, Types inputs);
Cost cost(const Slice& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const Concat& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Split& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Pad& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Slice& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Reshape& op, const GradientArgs& args);

}  // namespace trireme::op
