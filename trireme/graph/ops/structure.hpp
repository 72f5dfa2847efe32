// Operations that move elements without computing: concat, split, slice, pad, reshape.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// inputs: one or more, equal but for axis; outputs: dst
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

// inputs: src; outputs: the box of the given size that begins at begin
struct Slice {
  std::vector<std::int64_t> begin;
  std::vector<std::int64_t> size;
  static constexpr const char* kName = "slice";
};

// inputs: src; outputs: the same elements in row-major order under another shape
struct Reshape {
  Shape shape;
  static constexpr const char* kName = "reshape";
};

}  // namespace trireme::op
