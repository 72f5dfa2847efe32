// The optimizers' arithmetic: a rule applied to a range of values in memory, vectorised, on the calling thread. Used by
// the onednn backend's update and by parameter servers, each of which divides the values between threads as it likes:
// every element is computed alone, so the division changes no result.
#pragma once

#include <cstdint>
#include <span>

#include "trireme/graph/ops/update.hpp"

namespace trireme {

// The arrays that a rule writes: values, and the states that it keeps.
struct RuleArrays {
  float* values = nullptr;
  std::span<float* const> states;
};

// Elements of all arrays of one call.
struct RuleRange {
  std::int64_t begin = 0, count = 0;
};
// A good piece of work for one thread: small enough to divide evenly, and in the cache while it is worked on.
inline constexpr std::int64_t kRulePiece = 16384;

// The formulas are in graph/ops/optimizers.hpp, the rates from op::rates_at. Padding has zero gradients and values, and
// stays zero under every rule.
void apply_rule(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const float* gradient, RuleRange range);

// Σ weight·gradient / count, added up in the order of the list, as an all-reduce's mean with weights is. A gradient of
// weight 0 is not read: it may hold anything.
struct MeanGradient {
  std::span<const float* const> gradients;
  std::span<const float> weights;  // one per gradient; empty: all 1
  int count = 1;                   // what the sum is divided by; 1 or more
};
// Applies the rule to the mean, which is made piece by piece and never leaves the cache.
void apply_mean(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const MeanGradient& mean, RuleRange range);

}  // namespace trireme
