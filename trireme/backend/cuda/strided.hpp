// Where the elements of a box are in several tensors at once, and a Walk: the same as plain numbers for kernels
// (strided.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "trireme/plan/layout.hpp"

namespace trireme::cuda {

// Elements in one 16-byte access.
inline int full_pack(DataType type) { return static_cast<int>(16 / size_of(type)); }

// Converts to 32 bits; Error(bad_input) from 2^31 on.
std::uint32_t checked_positions(std::int64_t positions);

// Division by a fixed number as a product and a shift; correct for dividends below 2^31.
struct FastDivide {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 1;
  std::uint32_t shift = 0;

  FastDivide() = default;
  explicit FastDivide(std::int64_t divisor_);
};

inline constexpr int kMaxAxes = 8;

template <int kTensors>
struct Walk {
  std::uint32_t positions = 1;
  int axes = 0;
  FastDivide extents[kMaxAxes];  // innermost axis first
  std::int64_t strides[kTensors][kMaxAxes] = {};
};

using Strides = std::vector<std::int64_t>;  // elements between neighbors, by axis of the shape

// For layouts without blocks.
Strides axis_strides(const Shape& shape, const Layout& layout);
// Strides that read a tensor as if it had shape `to`: 0 along repeated axes.
Strides broadcast_strides(const TensorDesc& from, const Shape& to);

// Axes in memory order, outermost first, without those of extent 1; axes contiguous in every tensor are merged.
class Box {
 public:
  Box(const Shape& shape, const Layout& order, const std::vector<Strides>& tensors);

  int axes() const { return static_cast<int>(extents_.size()); }
  std::int64_t extent(int axis) const { return extents_[axis]; }
  std::int64_t stride(int axis, int tensor = 0) const { return strides_[axis][tensor]; }
  std::int64_t positions() const;
  // Whether `width` innermost elements can be read at once: contiguous and aligned in each tensor, or one repeated.
  bool allows_packs(int width) const;
  // The widest packs for writing dst, if it is dense in the box's order: 16 bytes or single elements.
  int pack_width(DataType dst) const { return allows_packs(full_pack(dst)) ? full_pack(dst) : 1; }
  // Whether the only tensor holds the box contiguously in the box's order.
  bool is_one_run() const { return axes() == 0 || (axes() == 1 && stride(0) == 1); }
  // Over packs of `width` elements.
  template <int kTensors>
  Walk<kTensors> walk(int width = 1) const {
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

 private:
  std::vector<std::int64_t> extents_;
  std::vector<Strides> strides_;  // [axis][tensor]
};

}  // namespace trireme::cuda
