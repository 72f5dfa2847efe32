// The vector loops of Winograd's convolution over layout aBcd16b: how a tensor is cut into tiles, the passes between
// tensors and transformed values, and the products of these. Used by winograd_forward.cpp and winograd_gradient.cpp,
// where the CPU has AVX-512.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/blocked_convolution.hpp"

namespace trireme::onednn::winograd {

// Where a tile lies: its image and the first row and column of its results.
struct Tile {
  std::int64_t image, row, column;
};

// The tiles of the results, image by image, row by row.
struct Tiling {
  std::int64_t images = 0, rows = 0, columns = 0;

  explicit Tiling(const Images& results);
  std::int64_t count() const { return images * rows * columns; }
  Tile operator[](std::int64_t index) const;
};

// What happens to results on their way to memory; null: left out.
struct Epilogue {
  const float* bias = nullptr;  // one value per lane of every block
  const float* addend = nullptr;
  bool relu = false;
};

// Transforms 16 channels of the 6x6 values that begin at row and column (values outside of the image are zero) and
// stores point p at to + p·stride.
void load_input(const Images& images, const float* src, const Tile& tile, std::int64_t block, float* to,
                std::int64_t stride);

// The same for 16 channels of the gradient of a tile's 4x4 results.
void load_gradient(const Images& images, const float* diff, const Tile& tile, std::int64_t block, float* to,
                   std::int64_t stride);

// Transforms 16 channels of a tile's products back, point p at from + p·stride, and stores those of the 4x4 results
// that are inside of the image.
void store_output(const Images& images, const Tile& tile, std::int64_t block, const float* from, std::int64_t stride,
                  const Epilogue& epilogue, float* dst);

// Transforms a block's weights: point p of inner channel i (and 16 outer ones) goes to to + p·point_stride +
// i·inner_stride.
void load_weights(const WeightsOrder& order, const float* block, float* to, std::int64_t point_stride,
                  std::int64_t inner_stride);

// The way back for gradients in the order of forward(): adds `count` blocks of [point][row][lane] that lie at from +
// i·stride, transforms the sum and stores the block.
void store_weights_gradient(const float* from, std::int64_t count, std::int64_t stride, float* block);

inline constexpr int kMaxRows = 14;  // with two vectors each, the sums leave four of the 32 registers for operands
inline constexpr int kMaxVectors = 2;

// m[row][vectors·16] = sum over the inner dimension of v[block][row][16] (value i of block b is 16·b + i) times
// u[16·block + i][vectors·16]. The results stay in registers while the inner dimension is walked.
using RowProduct = void (*)(std::int64_t blocks, const float* v, const float* u, float* m);
RowProduct row_product(int rows, int vectors);

// s[row][lane] = sum over count of x[i][row]·y[i][lane], or that added to s; 16 rows and lanes.
void block_product(std::int64_t count, const float* x, const float* y, bool add, float* s);

// to[lane] = sum over count of from[i][lane], or that added to `to`; 16 lanes.
void sum_vectors(std::int64_t count, const float* from, bool add, float* to);

}  // namespace trireme::onednn::winograd
