// The vector loops over panels (see channel_view.hpp) that batch norm, bias and channel reductions are made of. Arrays
// called columns have one value per column of the panel.
#pragma once

#include "trireme/backend/onednn/channel_view.hpp"

namespace trireme::onednn {

// sums[j] = sum of column j
void sum_columns(const Panel& panel, const float* x, float* sums);

// deviations[j] = sum of (x − centre[j]), squares[j] = sum of (x − centre[j])²
void centred_sums(const Panel& panel, const float* x, const float* centre, float* deviations, float* squares);

// y = (x − mean)·scale + shift + addend, at least 0 with relu; addend may be null. y may be x or addend.
struct AffineColumns {
  alignas(64) float mean[kPanelWidth], scale[kPanelWidth], shift[kPanelWidth];
};
struct AffineOperands {
  const float* x;
  const float* addend;
  float* y;
  bool relu;
};
void apply_affine(const Panel& panel, const AffineColumns& columns, const AffineOperands& operands);

// d is diff + more where dst > 0; more and dst may be null, then it is diff, everywhere.
struct GradientOperands {
  const float* x;
  const float* diff;
  const float* more;
  const float* dst;
  float* diff_x;
  float* diff_addend;  // null: not asked for
};
// diffs[j] = sum of d, products[j] = sum of d·(x − mean[j]); diff_addend = d, which may be diff or more.
void gradient_sums(const Panel& panel, const float* mean, const GradientOperands& operands, float* diffs,
                   float* products);

// diff_x = of_diff·d + of_x·(x − mean) + constant, with d from diff_addend where there is one. diff_x may be x, and
// without diff_addend diff or more.
struct GradientColumns {
  alignas(64) float mean[kPanelWidth], of_diff[kPanelWidth], of_x[kPanelWidth], constant[kPanelWidth];
};
void apply_gradient(const Panel& panel, const GradientColumns& columns, const GradientOperands& operands);

// best[j] = max(best[j], column j)
void max_columns(const Panel& panel, const float* x, float* best);

}  // namespace trireme::onednn
