// What our own convolutions share: activations in layout aBcd16b, weights in blocks of 16x16 channels, and the problem
// and memory of a convolution in these terms. Used by the files winograd_*.
#pragma once

#include <cstdint>
#include <optional>

#include "trireme/plan/layout.hpp"

namespace trireme::onednn {

inline constexpr std::int64_t kLanes = 16;  // channels of a block: the floats of a vector of AVX-512

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Layout blocked_activations();
Layout blocked_weights();

// Extents of activations.
struct Images {
  std::int64_t count = 0, blocks = 0, height = 0, width = 0;  // blocks of channels

  explicit Images(const Shape& shape);
};

// Where the blocks of the weights lie. A convolution sums over the "inner" channels and has "outer" ones in its
// results: its in and out, or the other way round for its gradient in src.
struct WeightsOrder {
  std::int64_t inner_stride = 0, outer_stride = 0;  // floats from one block to the next
  bool rows_are_inner = true;                       // the order inside of a block: taps, then 16 rows, then 16 lanes
  bool flipped = false;                             // the taps in reverse

  // Nothing for other layouts than ABcd16b16a and ABcd16a16b.
  static std::optional<WeightsOrder> forward(const Shape& weights, const Layout& layout);
  static std::optional<WeightsOrder> backward_data(const Shape& weights, const Layout& layout);
};

// dst = activation(src by weights + bias + addend), or the gradient of that in the weights, with src and dst as they
// are in forward. The gradient in src is of the first form: src and dst change places, as the order of the weights
// says.
struct BlockedProblem {
  Images src, dst;
  WeightsOrder weights;
  std::int64_t bias_channels = 0;  // 0: no bias
  bool relu = false;
};

struct ConvolutionArguments {
  const float* src;
  const float* weights;
  const float* bias;    // null: none
  const float* addend;  // null: none; may be dst
  float* dst;
  float* scratch;
};

struct GradientArguments {
  const float* src;
  const float* diff_dst;
  float* diff_weights;
  float* diff_bias;  // null: none
  float* scratch;
};

}  // namespace trireme::onednn
