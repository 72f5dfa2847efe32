// Applies an optimizer rule to a range of values, vectorized, on the calling thread. Used by the onednn backend and
// parameter servers, which may divide values between threads freely: elements are independent.
#pragma once

#include <cstdint>
#include <span>

#include "trireme/graph/ops/update.hpp"

namespace trireme {

struct RuleArrays {
  float* values = nullptr;
  std::span<float* const> states;
};

struct RuleRange {
  std::int64_t begin = 0, count = 0;
};
// A good piece of work for one thread: divides evenly and fits the cache.
inline constexpr std::int64_t kRulePiece = 16384;

// Formulas: graph/ops/optimizers.hpp; rates: op::rates_at. Padding has zero gradients and values, and stays zero.
void apply_rule(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const float* gradient, RuleRange range);

// Σ weight·gradient / count, summed in list order like an all-reduce. Gradients of weight 0 are not even read.
struct MeanGradient {
  std::span<const float* const> gradients;
  std::span<const float> weights;  // one per gradient; empty: all 1
  int count = 1;                   // divisor of the sum; 1 or more
};
// Applies the rule to the mean, computed piece by piece within the cache.
void apply_mean(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const MeanGradient& mean, RuleRange range);

}  // namespace trireme
