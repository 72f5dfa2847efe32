// The loop of max pooling's backward pass over one plane of one image. Used by pooling.cpp.
#pragma once

#include <cstdint>

#include "trireme/base/bfloat16.hpp"
#include "trireme/graph/ops/pooling.hpp"

namespace trireme::onednn {

// A plane is positions of src and dst times lanes, some of which are worked on.
struct MaxPoolPlane {
  op::Window window;
  std::int64_t src_height, src_width, dst_height, dst_width;
  std::int64_t lanes;  // from one position to the next
  std::int64_t width;  // lanes that are worked on
  bool relu;           // the gradient is that of relu too: nothing flows where src is not positive
  bool stream;         // diff_src is written around the cache: floats that are aligned, and no two windows overlap

  bool overlaps() const { return window.kernel[0] > window.stride[0] || window.kernel[1] > window.stride[1]; }
};

// The pointers are at the first lane. The first cell of a window whose value is the maximum gets the gradient. Every
// cell of diff_src is written, and read only where windows overlap.
template <typename Element>
struct MaxPoolOperands {
  const Element *diff_dst, *src, *dst;
  Element* diff_src;
};
void spread_to_maxima(const MaxPoolPlane& plane, const MaxPoolOperands<float>& operands);
void spread_to_maxima(const MaxPoolPlane& plane, const MaxPoolOperands<BFloat16>& operands);

}  // namespace trireme::onednn
