#include "trireme/backend/onednn/channel_loops.hpp"

#include "trireme/backend/onednn/simd.hpp"

namespace trireme::onednn {
namespace {

// Each loop is a template over the width: a full panel has a constant one, so that its sums stay in registers.
constexpr std::int64_t kAnyWidth = 0;

template <std::int64_t Width>
TRIREME_INLINE std::int64_t width_of(const Panel& panel) {
  return Width == kAnyWidth ? panel.width : Width;
}

template <std::int64_t Width>
TRIREME_INLINE void sum_columns_of(const Panel& panel, const float* x, float* sums) {
  const std::int64_t width = width_of<Width>(panel);
  float sum[kPanelWidth] = {};
  x += panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row, x += panel.stride) {
    for (std::int64_t j = 0; j < width; ++j) sum[j] += x[j];
  }
  for (std::int64_t j = 0; j < width; ++j) sums[j] = sum[j];
}

template <std::int64_t Width>
TRIREME_INLINE void centred_sums_of(const Panel& panel, const float* x, const float* centre, float* deviations,
                                    float* squares) {
  const std::int64_t width = width_of<Width>(panel);
  float deviation[kPanelWidth] = {}, square[kPanelWidth] = {};
  x += panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row, x += panel.stride) {
    for (std::int64_t j = 0; j < width; ++j) {
      const float centred = x[j] - centre[j];
      deviation[j] += centred;
      square[j] += centred * centred;
    }
  }
  for (std::int64_t j = 0; j < width; ++j) deviations[j] = deviation[j];
  for (std::int64_t j = 0; j < width; ++j) squares[j] = square[j];
}

template <std::int64_t Width, bool kAdd, bool kRelu>
TRIREME_INLINE void affine_of(const Panel& panel, const AffineColumns& c, const AffineOperands& operands) {
  const std::int64_t width = width_of<Width>(panel);
  const float* x = operands.x + panel.offset;
  const float* addend = kAdd ? operands.addend + panel.offset : nullptr;
  float* y = operands.y + panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      float value = (x[j] - c.mean[j]) * c.scale[j] + c.shift[j];
      if (kAdd) value += addend[j];
      y[j] = kRelu && value < 0 ? 0 : value;
    }
    x += panel.stride;
    y += panel.stride;
    if (kAdd) addend += panel.stride;
  }
}

template <std::int64_t Width>
TRIREME_INLINE void affine_any(const Panel& panel, const AffineColumns& columns, const AffineOperands& operands) {
  if (operands.addend != nullptr) {
    operands.relu ? affine_of<Width, true, true>(panel, columns, operands)
                  : affine_of<Width, true, false>(panel, columns, operands);
  } else {
    operands.relu ? affine_of<Width, false, true>(panel, columns, operands)
                  : affine_of<Width, false, false>(panel, columns, operands);
  }
}

template <std::int64_t Width, bool kMask>
TRIREME_INLINE void gradient_sums_of(const Panel& panel, const float* mean, const GradientOperands& operands,
                                     float* diffs, float* products) {
  const std::int64_t width = width_of<Width>(panel);
  float sum[kPanelWidth] = {}, product[kPanelWidth] = {};
  const float* x = operands.x + panel.offset;
  const float* diff = operands.diff + panel.offset;
  const float* dst = kMask ? operands.dst + panel.offset : nullptr;
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    for (std::int64_t j = 0; j < width; ++j) {
      const float d = !kMask || dst[j] > 0 ? diff[j] : 0;
      sum[j] += d;
      product[j] += d * (x[j] - mean[j]);
    }
    x += panel.stride;
    diff += panel.stride;
    if (kMask) dst += panel.stride;
  }
  for (std::int64_t j = 0; j < width; ++j) diffs[j] = sum[j];
  for (std::int64_t j = 0; j < width; ++j) products[j] = product[j];
}

template <std::int64_t Width, bool kMask, bool kAdd>
TRIREME_INLINE void gradient_of(const Panel& panel, const GradientColumns& c, const GradientOperands& operands) {
  const std::int64_t width = width_of<Width>(panel);
  const float* x = operands.x + panel.offset;
  const float* diff = operands.diff + panel.offset;
  const float* dst = kMask ? operands.dst + panel.offset : nullptr;
  float* diff_x = operands.diff_x + panel.offset;
  float* diff_addend = kAdd ? operands.diff_addend + panel.offset : nullptr;
  for (std::int64_t row = 0; row < panel.rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const float d = !kMask || dst[j] > 0 ? diff[j] : 0;
      const float result = c.of_diff[j] * d + c.of_x[j] * (x[j] - c.mean[j]) + c.constant[j];
      if (kAdd) diff_addend[j] = d;
      diff_x[j] = result;
    }
    x += panel.stride;
    diff += panel.stride;
    diff_x += panel.stride;
    if (kMask) dst += panel.stride;
    if (kAdd) diff_addend += panel.stride;
  }
}

template <std::int64_t Width>
TRIREME_INLINE void gradient_any(const Panel& panel, const GradientColumns& columns, const GradientOperands& operands) {
  if (operands.diff_addend != nullptr) {
    operands.dst != nullptr ? gradient_of<Width, true, true>(panel, columns, operands)
                            : gradient_of<Width, false, true>(panel, columns, operands);
  } else {
    operands.dst != nullptr ? gradient_of<Width, true, false>(panel, columns, operands)
                            : gradient_of<Width, false, false>(panel, columns, operands);
  }
}

}  // namespace

TRIREME_SIMD void sum_columns(const Panel& panel, const float* x, float* sums) {
  panel.width == kPanelWidth ? sum_columns_of<kPanelWidth>(panel, x, sums) : sum_columns_of<kAnyWidth>(panel, x, sums);
}

TRIREME_SIMD void centred_sums(const Panel& panel, const float* x, const float* centre, float* deviations,
                               float* squares) {
  panel.width == kPanelWidth ? centred_sums_of<kPanelWidth>(panel, x, centre, deviations, squares)
                             : centred_sums_of<kAnyWidth>(panel, x, centre, deviations, squares);
}

TRIREME_SIMD void apply_affine(const Panel& panel, const AffineColumns& columns, const AffineOperands& operands) {
  panel.width == kPanelWidth ? affine_any<kPanelWidth>(panel, columns, operands)
                             : affine_any<kAnyWidth>(panel, columns, operands);
}

TRIREME_SIMD void gradient_sums(const Panel& panel, const float* mean, const GradientOperands& operands, float* diffs,
                                float* products) {
  if (operands.dst != nullptr) {
    panel.width == kPanelWidth ? gradient_sums_of<kPanelWidth, true>(panel, mean, operands, diffs, products)
                               : gradient_sums_of<kAnyWidth, true>(panel, mean, operands, diffs, products);
  } else {
    panel.width == kPanelWidth ? gradient_sums_of<kPanelWidth, false>(panel, mean, operands, diffs, products)
                               : gradient_sums_of<kAnyWidth, false>(panel, mean, operands, diffs, products);
  }
}

TRIREME_SIMD void apply_gradient(const Panel& panel, const GradientColumns& columns, const GradientOperands& operands) {
  panel.width == kPanelWidth ? gradient_any<kPanelWidth>(panel, columns, operands)
                             : gradient_any<kAnyWidth>(panel, columns, operands);
}

TRIREME_SIMD void max_columns(const Panel& panel, const float* x, float* best) {
  x += panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row, x += panel.stride) {
    for (std::int64_t j = 0; j < panel.width; ++j) best[j] = x[j] > best[j] ? x[j] : best[j];
  }
}

}  // namespace trireme::onednn
