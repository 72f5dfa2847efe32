// The loops in registers of the 1x1 convolution: a tile of results is kept there while the inner dimension is walked,
// and what is needed next is fetched into the cache meanwhile. Used by pointwise_product.cpp and
// pointwise_gradient.cpp, where the CPU has AVX-512.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/blocked_convolution.hpp"

namespace trireme::onednn::pointwise {

inline constexpr int kMaxRows = 14;  // with two vectors each, the sums leave four of the 32 registers for operands
inline constexpr int kMaxVectors = 2;

// to[vector][row][lane] = activation(sum over the inner channels of src[channel / 16][row][channel % 16] ·
// weights[vector][channel][lane] + from + bias). Strides are in floats, from one block of 16 channels to the next.
struct RowTile {
  std::int64_t blocks;  // of inner channels
  const float* src;
  std::int64_t src_stride;
  const float* weights;
  std::int64_t weights_stride;
  const float* from;  // null: zeros; may be `to`
  const float* bias;  // null: none
  float* to;
  std::int64_t to_stride;  // of from, too
  bool relu;
  bool stream;  // writes around the cache
  // Rows of a later tile's src to fetch; none: begin == end.
  const float* next;
  std::int64_t next_stride, next_row_stride, next_begin, next_end;
};
using RowProduct = void (*)(const RowTile& tile);
RowProduct row_product(int rows, int vectors);

// A rectangle of vectors in an image, whose rows are row_stride floats apart.
struct Cell {
  float* first;
  std::int64_t height, width, row_stride;
};
// `value` in the first place of the cell and zeros in the others.
void store_cell(const float* value, const Cell& cell, bool stream);

// sums[row][lane] = sum over `count` pixels of `images` of x[image][pixel][row]·y[image][pixel][lane], or that added to
// sums; 16 rows and lanes. Strides are in floats, from one image to the next. Of each image, count / 2 vectors from
// next on are fetched.
struct PixelSums {
  std::int64_t images, count;
  const float* x;
  const float* y;
  const float* next;
  std::int64_t x_stride, y_stride, next_stride;
  bool add;
  float* sums;
};
void add_pixels(const PixelSums& pixels);

// sums[lane] = the sum over `count` vectors, added to sums.
void add_vectors(std::int64_t count, const float* from, float* sums);
// to[i] += from[i]; count is a multiple of 16.
void add_values(std::int64_t count, const float* from, float* to);

}  // namespace trireme::onednn::pointwise
