// Where the 16x16 blocks of a 3x3 convolution's weights lie, for the two blocked layouts that convolutions take, and
// the passes between them and transformed weights. Used by winograd_forward.cpp and winograd_gradient.cpp.
#pragma once

#include <cstdint>
#include <optional>

#include "trireme/plan/layout.hpp"

namespace trireme::onednn::winograd {

// The product has the channels that it sums over ("inner") and those of its results ("outer"): in and out of the
// convolution, or the other way round for its gradient in src.
struct WeightsOrder {
  std::int64_t inner_stride = 0, outer_stride = 0;  // elements from one block of 16 channels to the next
  bool rows_are_inner = true;  // the order inside of a block: 3x3 taps, then 16 rows, then 16 lanes
  bool flipped = false;        // the taps in reverse

  // Nothing for other layouts than ABcd16b16a and ABcd16a16b.
  static std::optional<WeightsOrder> forward(const Shape& weights, const Layout& layout);
  static std::optional<WeightsOrder> backward_data(const Shape& weights, const Layout& layout);
};

// Transforms a block's weights: point p of inner channel i (and 16 outer ones) goes to to + p·point_stride +
// i·inner_stride.
void load_weights(const WeightsOrder& order, const float* block, float* to, std::int64_t point_stride,
                  std::int64_t inner_stride);

// The way back for gradients in the order of forward(): adds `count` blocks of [point][row][lane] that lie at from +
// i·stride, transforms the sum and stores the block.
void store_weights_gradient(const float* from, std::int64_t count, std::int64_t stride, float* block);

}  // namespace trireme::onednn::winograd
