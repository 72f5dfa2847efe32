#include "trireme/optim/apply_rule.hpp"

#include <algorithm>
#include <utility>

#include "trireme/base/simd.hpp"

namespace trireme {
namespace {

// Elements of a mean made at a time: fits a core's caches together with the gradients.
constexpr std::int64_t kMeanBlock = 2048;
// Gradients read at the same time: twice as fast as one by one, because of prefetching in all.
constexpr int kTogether = 4;

struct Weighted {
  const float* gradient;
  float weight;
};

template <int kGradients>
TRIREME_INLINE void add_together(const Weighted* list, std::int64_t count, float* sum) {
  Weighted each[kGradients];  // a copy that cannot alias the sum
  for (int k = 0; k < kGradients; ++k) each[k] = list[k];
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    float total = sum[i];
    for (int k = 0; k < kGradients; ++k) total += each[k].weight * each[k].gradient[i];
    sum[i] = total;
  }
}

TRIREME_SIMD void add_gradients(const Weighted* list, int gradients, std::int64_t count, float* sum) {
  switch (gradients) {
    case 1:
      return add_together<1>(list, count, sum);
    case 2:
      return add_together<2>(list, count, sum);
    case 3:
      return add_together<3>(list, count, sum);
    case kTogether:
      return add_together<kTogether>(list, count, sum);
    default:
      return;
  }
}

TRIREME_SIMD void scale(float factor, std::int64_t count, float* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] *= factor;
}

void take_mean(const MeanGradient& mean, RuleRange range, float* result) {
  std::fill_n(result, range.count, 0.0f);
  Weighted waiting[kTogether];
  int count = 0;
  for (std::size_t i = 0; i < mean.gradients.size(); ++i) {
    const float weight = mean.weights.empty() ? 1.0f : mean.weights[i];
    if (weight == 0) continue;
    waiting[count++] = {mean.gradients[i] + range.begin, weight};
    if (count == kTogether) add_gradients(waiting, std::exchange(count, 0), range.count, result);
  }
  add_gradients(waiting, count, range.count, result);
  scale(1.0f / static_cast<float>(mean.count), range.count, result);
}

template <typename Optimizer>
TRIREME_INLINE void update_all(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                               const float* gradient, RuleRange range) {
  const op::OptimizerRule own_rule = rule;  // copies that cannot alias the arrays
  const op::Rates<float> own_rates = rates;
  float* const values = arrays.values + range.begin;
  float* states[op::kMostStates];
  for (std::size_t s = 0; s < Optimizer::kStates.size(); ++s) states[s] = arrays.states[s] + range.begin;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < range.count; ++i) {
    op::update_element<Optimizer>(own_rule, own_rates, gradient[i], values[i], states, i);
  }
}

TRIREME_SIMD void update(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                         const float* gradient, RuleRange range) {
  op::Optimizers::visit(
      rule.kind, [&](auto optimizer) __attribute__((always_inline)) {
        update_all<decltype(optimizer)>(rule, rates, arrays, gradient, range);
      });
}

}  // namespace

void apply_rule(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const float* gradient, RuleRange range) {
  update(rule, rates, arrays, gradient + range.begin, range);
}

void apply_mean(const op::OptimizerRule& rule, const op::Rates<float>& rates, const RuleArrays& arrays,
                const MeanGradient& mean, RuleRange range) {
  alignas(64) float block[kMeanBlock];
  for (std::int64_t done = 0; done < range.count; done += kMeanBlock) {
    const RuleRange part{range.begin + done, std::min(kMeanBlock, range.count - done)};
    take_mean(mean, part, block);
    update(rule, rates, arrays, block, part);
  }
}

}  // namespace trireme
