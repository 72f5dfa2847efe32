// Layouts, problem and arguments of own convolutions: activations in aBcd16b, weights in blocks of 16x16 channels.
#pragma once

#include <cstdint>
#include <optional>

#include "trireme/plan/layout.hpp"

namespace trireme::onednn {

inline constexpr std::int64_t kLanes = 16;  // channels of a block: the floats of an AVX-512 vector

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Layout blocked_activations();
Layout blocked_weights();

struct Images {
  std::int64_t count = 0, blocks = 0, height = 0, width = 0;  // blocks of channels

  explicit Images(const Shape& shape);
};

// Where weight blocks are. A convolution sums over "inner" channels (in, or out for the gradient of src) into "outer".
struct WeightsOrder {
  std::int64_t inner_stride = 0, outer_stride = 0;  // floats between blocks
  bool rows_are_inner = true;                       // a block is [tap][16 rows][16 lanes]
  bool flipped = false;                             // taps in reverse

  // Nothing unless the layout is ABcd16b16a or ABcd16a16b.
  static std::optional<WeightsOrder> forward(const Shape& weights, const Layout& layout);
  static std::optional<WeightsOrder> backward_data(const Shape& weights, const Layout& layout);
};

// dst = activation(src by weights + bias + addend), or its gradient for the weights. The gradient for src is the former
// with src and dst swapped and the matching weights order.
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
