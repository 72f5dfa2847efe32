#include "trireme/backend/onednn/channel_loops.hpp"

#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

// Loops are templates over the width: a full panel has a constant one, so that its sums stay in registers.
constexpr std::int64_t kAnyWidth = 0;

template <std::int64_t Width>
TRIREME_INLINE std::int64_t width_of(const Panel& panel) {
  return Width == kAnyWidth ? panel.width : Width;
}

template <std::int64_t Width, typename Element>
TRIREME_INLINE void sum_columns_of(const Panel& panel, const Element* x, float* sums) {
  const std::int64_t width = width_of<Width>(panel);
  float sum[kPanelWidth] = {};
  x += panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row, x += panel.stride) {
    for (std::int64_t j = 0; j < width; ++j) sum[j] += x[j];
  }
  for (std::int64_t j = 0; j < width; ++j) sums[j] = sum[j];
}

template <std::int64_t Width, typename Element>
TRIREME_INLINE void centred_sums_of(const Panel& panel, const Element* x, const float* centre, float* deviations,
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

template <std::int64_t Width, bool kAdd, bool kRelu, typename Element>
TRIREME_INLINE void affine_of(const Panel& panel, const AffineColumns& c, const AffineOperands<Element>& operands) {
  const std::int64_t width = width_of<Width>(panel);
  const Element* x = operands.x + panel.offset;
  const Element* addend = kAdd ? operands.addend + panel.offset : nullptr;
  Element* y = operands.y + panel.offset;
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

template <std::int64_t Width, typename Element>
TRIREME_INLINE void affine_any(const Panel& panel, const AffineColumns& columns,
                               const AffineOperands<Element>& operands) {
  if (operands.addend != nullptr) {
    operands.relu ? affine_of<Width, true, true>(panel, columns, operands)
                  : affine_of<Width, true, false>(panel, columns, operands);
  } else {
    operands.relu ? affine_of<Width, false, true>(panel, columns, operands)
                  : affine_of<Width, false, false>(panel, columns, operands);
  }
}

// The gradient before the activation, row by row.
template <bool kMore, bool kMask, typename Element>
struct GradientRows {
  const Element* diff;
  const Element* more;
  const Element* dst;

  TRIREME_INLINE GradientRows(const GradientOperands<Element>& operands, std::int64_t offset)
      : diff(operands.diff + offset),
        more(kMore ? operands.more + offset : nullptr),
        dst(kMask ? operands.dst + offset : nullptr) {}
  TRIREME_INLINE float at(std::int64_t j) const {
    const float sum = kMore ? diff[j] + more[j] : diff[j];
    return !kMask || dst[j] > 0 ? sum : 0;
  }
  TRIREME_INLINE void advance(std::int64_t stride) {
    diff += stride;
    if (kMore) more += stride;
    if (kMask) dst += stride;
  }
};

template <std::int64_t Width, bool kMore, bool kMask, bool kKeep, typename Element>
TRIREME_INLINE void gradient_sums_of(const Panel& panel, const float* mean, const GradientOperands<Element>& operands,
                                     float* diffs, float* products) {
  const std::int64_t width = width_of<Width>(panel);
  float sum[kPanelWidth] = {}, product[kPanelWidth] = {};
  const Element* x = operands.x + panel.offset;
  GradientRows<kMore, kMask, Element> d(operands, panel.offset);
  Element* kept = kKeep ? operands.diff_addend + panel.offset : nullptr;
  for (std::int64_t row = 0; row < panel.rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j) {
      const float value = d.at(j);
      sum[j] += value;
      product[j] += value * (x[j] - mean[j]);
      if (kKeep) kept[j] = value;
    }
    x += panel.stride;
    d.advance(panel.stride);
    if (kKeep) kept += panel.stride;
  }
  for (std::int64_t j = 0; j < width; ++j) diffs[j] = sum[j];
  for (std::int64_t j = 0; j < width; ++j) products[j] = product[j];
}

template <bool kMore, bool kMask, bool kKeep, typename Element>
TRIREME_INLINE void gradient_sums_any(const Panel& panel, const float* mean, const GradientOperands<Element>& operands,
                                      float* diffs, float* products) {
  panel.width == kPanelWidth
      ? gradient_sums_of<kPanelWidth, kMore, kMask, kKeep>(panel, mean, operands, diffs, products)
      : gradient_sums_of<kAnyWidth, kMore, kMask, kKeep>(panel, mean, operands, diffs, products);
}

template <std::int64_t Width, bool kMore, bool kMask, typename Element>
TRIREME_INLINE void gradient_of(const Panel& panel, const GradientColumns& c,
                                const GradientOperands<Element>& operands) {
  const std::int64_t width = width_of<Width>(panel);
  const Element* x = operands.x + panel.offset;
  GradientRows<kMore, kMask, Element> d(operands, panel.offset);
  Element* diff_x = operands.diff_x + panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row) {
#pragma omp simd
    for (std::int64_t j = 0; j < width; ++j)
      diff_x[j] = c.of_diff[j] * d.at(j) + c.of_x[j] * (x[j] - c.mean[j]) + c.constant[j];
    x += panel.stride;
    d.advance(panel.stride);
    diff_x += panel.stride;
  }
}

template <bool kMore, bool kMask, typename Element>
TRIREME_INLINE void gradient_any(const Panel& panel, const GradientColumns& columns,
                                 const GradientOperands<Element>& operands) {
  panel.width == kPanelWidth ? gradient_of<kPanelWidth, kMore, kMask>(panel, columns, operands)
                             : gradient_of<kAnyWidth, kMore, kMask>(panel, columns, operands);
}

// The operands of the second pass if the first has stored d.
template <typename Element>
TRIREME_INLINE GradientOperands<Element> of_kept(const GradientOperands<Element>& operands) {
  return {.x = operands.x,
          .diff = operands.diff_addend,
          .more = nullptr,
          .dst = nullptr,
          .diff_x = operands.diff_x,
          .diff_addend = nullptr};
}

template <typename Element>
TRIREME_INLINE void sum_columns_all(const Panel& panel, const Element* x, float* sums) {
  panel.width == kPanelWidth ? sum_columns_of<kPanelWidth>(panel, x, sums) : sum_columns_of<kAnyWidth>(panel, x, sums);
}

template <typename Element>
TRIREME_INLINE void centred_sums_all(const Panel& panel, const Element* x, const float* centre, float* deviations,
                                     float* squares) {
  panel.width == kPanelWidth ? centred_sums_of<kPanelWidth>(panel, x, centre, deviations, squares)
                             : centred_sums_of<kAnyWidth>(panel, x, centre, deviations, squares);
}

template <typename Element>
TRIREME_INLINE void apply_affine_all(const Panel& panel, const AffineColumns& columns,
                                     const AffineOperands<Element>& operands) {
  panel.width == kPanelWidth ? affine_any<kPanelWidth>(panel, columns, operands)
                             : affine_any<kAnyWidth>(panel, columns, operands);
}

template <typename Element>
TRIREME_INLINE void gradient_sums_all(const Panel& panel, const float* mean, const GradientOperands<Element>& operands,
                                      float* diffs, float* products) {
  const bool more = operands.more != nullptr, mask = operands.dst != nullptr;
  if (operands.diff_addend == nullptr) {
    if (more) {
      mask ? gradient_sums_any<true, true, false>(panel, mean, operands, diffs, products)
           : gradient_sums_any<true, false, false>(panel, mean, operands, diffs, products);
    } else {
      mask ? gradient_sums_any<false, true, false>(panel, mean, operands, diffs, products)
           : gradient_sums_any<false, false, false>(panel, mean, operands, diffs, products);
    }
  } else if (more) {
    mask ? gradient_sums_any<true, true, true>(panel, mean, operands, diffs, products)
         : gradient_sums_any<true, false, true>(panel, mean, operands, diffs, products);
  } else {
    mask ? gradient_sums_any<false, true, true>(panel, mean, operands, diffs, products)
         : gradient_sums_any<false, false, true>(panel, mean, operands, diffs, products);
  }
}

template <typename Element>
TRIREME_INLINE void apply_gradient_all(const Panel& panel, const GradientColumns& columns,
                                       const GradientOperands<Element>& operands) {
  if (operands.diff_addend != nullptr) {
    gradient_any<false, false>(panel, columns, of_kept(operands));
  } else if (operands.more != nullptr) {
    operands.dst != nullptr ? gradient_any<true, true>(panel, columns, operands)
                            : gradient_any<true, false>(panel, columns, operands);
  } else {
    operands.dst != nullptr ? gradient_any<false, true>(panel, columns, operands)
                            : gradient_any<false, false>(panel, columns, operands);
  }
}

template <typename Element>
TRIREME_INLINE void max_columns_all(const Panel& panel, const Element* x, float* best) {
  x += panel.offset;
  for (std::int64_t row = 0; row < panel.rows; ++row, x += panel.stride) {
    for (std::int64_t j = 0; j < panel.width; ++j) best[j] = x[j] > best[j] ? x[j] : best[j];
  }
}

}  // namespace

TRIREME_SIMD void sum_columns(const Panel& panel, const float* x, float* sums) { sum_columns_all(panel, x, sums); }
TRIREME_SIMD void sum_columns(const Panel& panel, const BFloat16* x, float* sums) { sum_columns_all(panel, x, sums); }

TRIREME_SIMD void centred_sums(const Panel& panel, const float* x, const float* centre, float* deviations,
                               float* squares) {
  centred_sums_all(panel, x, centre, deviations, squares);
}
TRIREME_SIMD void centred_sums(const Panel& panel, const BFloat16* x, const float* centre, float* deviations,
                               float* squares) {
  centred_sums_all(panel, x, centre, deviations, squares);
}

TRIREME_SIMD void apply_columns(const Panel& panel, const AffineColumns& columns,
                                const AffineOperands<float>& operands) {
  apply_affine_all(panel, columns, operands);
}
TRIREME_SIMD void apply_columns(const Panel& panel, const AffineColumns& columns,
                                const AffineOperands<BFloat16>& operands) {
  apply_affine_all(panel, columns, operands);
}

TRIREME_SIMD void gradient_sums(const Panel& panel, const float* mean, const GradientOperands<float>& operands,
                                float* diffs, float* products) {
  gradient_sums_all(panel, mean, operands, diffs, products);
}
TRIREME_SIMD void gradient_sums(const Panel& panel, const float* mean, const GradientOperands<BFloat16>& operands,
                                float* diffs, float* products) {
  gradient_sums_all(panel, mean, operands, diffs, products);
}

TRIREME_SIMD void apply_columns(const Panel& panel, const GradientColumns& columns,
                                const GradientOperands<float>& operands) {
  apply_gradient_all(panel, columns, operands);
}
TRIREME_SIMD void apply_columns(const Panel& panel, const GradientColumns& columns,
                                const GradientOperands<BFloat16>& operands) {
  apply_gradient_all(panel, columns, operands);
}

TRIREME_SIMD void max_columns(const Panel& panel, const float* x, float* best) { max_columns_all(panel, x, best); }
TRIREME_SIMD void max_columns(const Panel& panel, const BFloat16* x, float* best) { max_columns_all(panel, x, best); }

}  // namespace trireme::onednn
