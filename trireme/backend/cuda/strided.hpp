// Where the elements of a box lie in several tensors at once: the idea behind broadcasting, slicing, padding,
// reordering and reduction. For the factories, which make a Walk of it for the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "trireme/backend/cuda/walk.hpp"
#include "trireme/plan/layout.hpp"

namespace trireme::cuda {

using Strides = std::vector<std::int64_t>;  // elements between neighbours, by axis of the shape

// Of a layout without blocks.
Strides axis_strides(const Shape& shape, const Layout& layout);
// Of a tensor that is read as if it had the shape `to`: 0 along axes that are repeated.
Strides broadcast_strides(const TensorDesc& from, const Shape& to);

// A box whose axes are ordered as memory is, outermost first: axes of extent 1 are left out, and neighbours that are
// one run in every tensor are joined.
class Box {
 public:
  Box(const Shape& shape, const Layout& order, const std::vector<Strides>& tensors);

  int axes() const { return static_cast<int>(extents_.size()); }
  std::int64_t extent(int axis) const { return extents_[axis]; }
  std::int64_t stride(int axis, int tensor = 0) const { return strides_[axis][tensor]; }
  std::int64_t positions() const;
  // Whether so many neighbours of the innermost axis can be taken at once: they are neighbours, aligned to their
  // number, in each tensor, or one element that is repeated.
  bool allows_packs(int width) const;
  // The widest packs that dst can be written in, where it is dense in the box's order: of 16 bytes, or single elements.
  int pack_width(DataType dst) const { return allows_packs(full_pack(dst)) ? full_pack(dst) : 1; }
  // Whether the only tensor holds the box as one run in the box's order.
  bool is_one_run() const { return axes() == 0 || (axes() == 1 && stride(0) == 1); }
  // Over packs of the width.
  template <int kTensors>
  Walk<kTensors> walk(int width = 1) const;

 private:
  std::vector<std::int64_t> extents_;
  std::vector<Strides> strides_;  // [axis][tensor]
};

template <int kTensors>
Walk<kTensors> Box::walk(int width) const {
  Walk<kTensors> walk;
  walk.positions = checked_positions(positions() / width);
  walk.axes = axes();
  for (int i = 0; i < walk.axes; ++i) {
    const int axis = walk.axes - 1 - i;
    const int step = i == 0 ? width : 1;
    walk.extents[i] = FastDivide(extent(axis) / step);
    for (int tensor = 0; tensor < kTensors; ++tensor) walk.strides[tensor][i] = stride(axis, tensor) * step;
  }
  return walk;
}

}  // namespace trireme::cuda
