// The physical order of a tensor's elements, as plain data: a permutation of the axes from outermost to innermost, then
// inner blocks of some axes (oneDNN's scheme without its strides). An axis that is blocked is padded up to a multiple
// of its block, and the padding holds zeros. Chosen by backends, compared and printed by the plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trireme/base/shape.hpp"

namespace trireme {

struct Layout {
  struct Block {
    int axis = 0;
    std::int64_t size = 1;
    bool operator==(const Block&) const = default;
  };
  std::vector<int> order;     // axes, outermost first
  std::vector<Block> blocks;  // inner blocks, outermost first

  static Layout plain(int rank);          // row-major: nchw, oihw
  static Layout channels_last(int rank);  // nhwc; the same as plain below rank 3

  bool is_plain() const;
  // Elements with padding.
  std::int64_t elements(const Shape& shape) const;
  // oneDNN's notation: "abcd", "acdb", "aBcd16b", "ABcd16b16a".
  std::string name() const;
  bool operator==(const Layout&) const = default;
};

// How the elements of a tensor are stored: their order and their type.
struct Format {
  Layout layout;
  DataType dtype = DataType::f32;

  Format(Layout l, DataType type = DataType::f32)  // NOLINT(google-explicit-constructor): most formats are f32
      : layout(std::move(l)), dtype(type) {}
  // "aBcd16b"; of bf16 "aBcd16b:bf16".
  std::string name() const;
  bool operator==(const Format&) const = default;
};

// A tensor as kernels see it.
struct TensorDesc {
  DataType dtype = DataType::f32;
  Shape shape;
  Layout layout;
  Format format() const { return {layout, dtype}; }
  std::int64_t bytes() const { return size_of(dtype) * layout.elements(shape); }
  bool operator==(const TensorDesc&) const = default;
};

// The position of an element in memory is a sum of one term per axis: offsets[axis][index on that axis]. With these
// tables generic code can walk any layout.
std::vector<std::vector<std::int64_t>> axis_offsets(const TensorDesc& desc);

// Between plain row-major order on the host, where elements have four bytes, and a tensor as it is stored: bf16 and
// f16 are f32 on the host. pack() zeroes the padding. In parallel; for set-up, fetches and tests, not for steps (there
// the backend's reorder kernel is used).
void pack(const TensorDesc& desc, const void* plain, void* packed);
void unpack(const TensorDesc& desc, const void* packed, void* plain);

}  // namespace trireme
