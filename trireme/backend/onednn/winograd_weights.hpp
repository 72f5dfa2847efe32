// The passes between the blocks of a 3x3 convolution's weights and transformed weights. Used by winograd_forward.cpp
// and winograd_gradient.cpp.
#pragma once

#include <cstdint>

#include "trireme/backend/onednn/blocked_convolution.hpp"

namespace trireme::onednn::winograd {

// Transforms a block's weights: point p of inner channel i (and 16 outer ones) goes to to + p·point_stride +
// i·inner_stride.
void load_weights(const WeightsOrder& order, const float* block, float* to, std::int64_t point_stride,
                  std::int64_t inner_stride);

// The way back for gradients in the order of forward(): adds `count` blocks of [point][row][lane] that lie at from +
// i·stride, transforms the sum and stores the block.
void store_weights_gradient(const float* from, std::int64_t count, std::int64_t stride, float* block);

}  // namespace trireme::onednn::winograd
