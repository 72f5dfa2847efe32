// Vector loops of Winograd's convolution over layout aBcd16b: tiling, the transforms to and from memory, and the
// products of transformed values. Used by winograd_forward.cpp and winograd_gradient.cpp if the CPU has AVX-512.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/blocked_convolution.hpp"

namespace trireme::onednn::winograd {

// A tile's image, and the first row and column of its results.
struct Tile {
  std::int64_t image, row, column;
};

struct Tiling {
  std::int64_t images = 0, rows = 0, columns = 0;

  explicit Tiling(const Images& results);
  std::int64_t count() const { return images * rows * columns; }
  Tile operator[](std::int64_t index) const;
};

// What is applied to results before they are stored; null: nothing.
struct Epilogue {
  const float* bias = nullptr;  // one value per lane of every block
  const float* addend = nullptr;
  bool relu = false;
};

// Transforms 16 channels of the tile's 6x6 values (zero outside the image); stores point p at to + p·stride.
void load_input(const Images& images, const float* src, const Tile& tile, std::int64_t block, float* to,
                std::int64_t stride);

// The same for 16 channels of the gradient of a tile's 4x4 results.
void load_gradient(const Images& images, const float* diff, const Tile& tile, std::int64_t block, float* to,
                   std::int64_t stride);

// Transforms 16 channels of products back, point p at from + p·stride; stores the 4x4 results inside the image.
void store_output(const Images& images, const Tile& tile, std::int64_t block, const float* from, std::int64_t stride,
                  const Epilogue& epilogue, float* dst);

// Transforms a block's weights: point p of inner channel i, 16 floats, goes to to + p·point_stride + i·inner_stride.
void load_weights(const WeightsOrder& order, const float* block, float* to, std::int64_t point_stride,
                  std::int64_t inner_stride);

// The reverse for gradients, in the order of forward(): transforms the sum of `count` blocks of [point][row][lane],
// block i at from + i·stride, and stores the block.
void store_weights_gradient(const float* from, std::int64_t count, std::int64_t stride, float* block);

inline constexpr int kMaxRows = 14;  // with two vectors each, the sums leave 4 of 32 registers for operands
inline constexpr int kMaxVectors = 2;

// m[row][vectors·16] = sum over the inner dimension of v[block][row][16] (value i of block b is 16·b + i) times
// u[16·block + i][vectors·16]. Sums stay in registers over the whole inner dimension.
using RowProduct = void (*)(std::int64_t blocks, const float* v, const float* u, float* m);
RowProduct row_product(int rows, int vectors);

// s[row][lane] = sum over count of x[i][row]·y[i][lane], or adds it to s; 16 rows and lanes.
void block_product(std::int64_t count, const float* x, const float* y, bool add, float* s);

// to[lane] = sum over count of from[i][lane], or adds it to `to`; 16 lanes.
void sum_vectors(std::int64_t count, const float* from, bool add, float* to);

}  // namespace trireme::onednn::winograd
