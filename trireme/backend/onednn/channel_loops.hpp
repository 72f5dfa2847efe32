// Vector loops over panels (channel_view.hpp) for batch norm, bias and channel reductions. "columns" arrays have one
// value per column of the panel. Activations are float or BFloat16, everything else is float.
#pragma once

#include "trireme/backend/onednn/channel_view.hpp"
#include "trireme/base/bfloat16.hpp"

namespace trireme::onednn {

// sums[j] = sum of column j
void sum_columns(const Panel& panel, const float* x, float* sums);
void sum_columns(const Panel& panel, const BFloat16* x, float* sums);

// deviations[j] = sum of (x − centre[j]), squares[j] = sum of (x − centre[j])²
void centred_sums(const Panel& panel, const float* x, const float* centre, float* deviations, float* squares);
void centred_sums(const Panel& panel, const BFloat16* x, const float* centre, float* deviations, float* squares);

// y = (x − mean)·scale + shift + addend, at least 0 with relu; addend may be null. y may be x or addend.
struct AffineColumns {
  alignas(64) float mean[kPanelWidth], scale[kPanelWidth], shift[kPanelWidth];
};
template <typename Element>
struct AffineOperands {
  const Element* x;
  const Element* addend;
  Element* y;
  bool relu;
};
void apply_columns(const Panel& panel, const AffineColumns& columns, const AffineOperands<float>& operands);
void apply_columns(const Panel& panel, const AffineColumns& columns, const AffineOperands<BFloat16>& operands);

// d = diff + more if dst > 0, else 0. more may be null (nothing to add), dst too (no mask).
template <typename Element>
struct GradientOperands {
  const Element* x;
  const Element* diff;
  const Element* more;
  const Element* dst;
  Element* diff_x;
  Element* diff_addend;  // null: not wanted
};
// diffs[j] = sum of d, products[j] = sum of d·(x − mean[j]). diff_addend = d; it may be diff or more.
void gradient_sums(const Panel& panel, const float* mean, const GradientOperands<float>& operands, float* diffs,
                   float* products);
void gradient_sums(const Panel& panel, const float* mean, const GradientOperands<BFloat16>& operands, float* diffs,
                   float* products);

// diff_x = of_diff·d + of_x·(x − mean) + constant, with d from diff_addend if given. diff_x may be x or, without
// diff_addend, diff or more.
struct GradientColumns {
  alignas(64) float mean[kPanelWidth], of_diff[kPanelWidth], of_x[kPanelWidth], constant[kPanelWidth];
};
void apply_columns(const Panel& panel, const GradientColumns& columns, const GradientOperands<float>& operands);
void apply_columns(const Panel& panel, const GradientColumns& columns, const GradientOperands<BFloat16>& operands);

// best[j] = max(best[j], column j)
void max_columns(const Panel& panel, const float* x, float* best);
void max_columns(const Panel& panel, const BFloat16* x, float* best);

}  // namespace trireme::onednn
