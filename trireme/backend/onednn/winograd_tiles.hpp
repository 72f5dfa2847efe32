// How Winograd's convolution cuts a tensor of layout aBcd16b into tiles, and the passes between the tensor and the
// transformed values of one tile. Used by winograd_forward.cpp and winograd_gradient.cpp.
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

}  // namespace trireme::onednn::winograd
