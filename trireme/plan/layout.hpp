// The physical order of a tensor's elements: a permutation of the axes, outermost first, then inner blocks of some axes
// (oneDNN's scheme without strides). Blocked axes are zero-padded to whole blocks. Chosen by backends.
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
  std::int64_t elements(const Shape& shape) const;  // including padding
  std::string name() const;                         // oneDNN's: "abcd", "acdb", "aBcd16b", "ABcd16b16a"
  bool operator==(const Layout&) const = default;
};

struct Format {
  Layout layout;
  DataType dtype = DataType::f32;

  Format(Layout l, DataType type = DataType::f32)  // NOLINT(google-explicit-constructor): most formats are f32
      : layout(std::move(l)), dtype(type) {}
  std::string name() const;  // "aBcd16b"; "aBcd16b:bf16"
  bool operator==(const Format&) const = default;
};

struct TensorDesc {
  DataType dtype = DataType::f32;
  Shape shape;
  Layout layout;
  Format format() const { return {layout, dtype}; }
  std::int64_t bytes() const { return size_of(dtype) * layout.elements(shape); }
  bool operator==(const TensorDesc&) const = default;
};

// An element's position in memory is the sum over axes of offsets[axis][index on that axis], for any layout.
std::vector<std::vector<std::int64_t>> axis_offsets(const TensorDesc& desc);

// Convert between plain row-major host order with four-byte elements (bf16 and f16 are f32 there) and the stored
// tensor. pack() zeroes the padding. Parallel; for setup, fetches and tests. Steps use the backend's reorder kernel.
void pack(const TensorDesc& desc, const void* plain, void* packed);
void unpack(const TensorDesc& desc, const void* packed, void* plain);

}  // namespace trireme
