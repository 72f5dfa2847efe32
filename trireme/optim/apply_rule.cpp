#include "trireme/optim/apply_rule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trireme/base/simd.hpp"

namespace trireme {
namespace {

// Elements of a mean that are made at a time: with those of the gradients they fit into a core's caches.
constexpr std::int64_t kMeanBlock = 2048;
// Gradients that are read at the same time: twice as fast as one after the other, because memory is read ahead in all.
constexpr int kTogether = 4;

struct Weighted {
  const float* gradient;
  float weight;
};

template <int kGradients>
TRIREME_INLINE void add_together(const Weighted* list, std::int64_t count, float* sum) {
  Weighted each[kGradients];  // a copy that cannot overlap with the sum
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

TRIREME_SIMD void update(const op::OptimizerRule& rule, const RuleRates& rates, const RuleArrays& arrays,
                         const float* __restrict gradient, std::int64_t count) {
  float* __restrict value = arrays.values;
  float* __restrict first = arrays.first_state;
  float* __restrict second = arrays.second_state;
  const float rate = rates.learning_rate, decay = rule.weight_decay, momentum = rule.momentum, epsilon = rule.epsilon;
  switch (rule.kind) {
    case op::OptimizerKind::sgd:
      for (std::int64_t i = 0; i < count; ++i) value[i] -= rate * (gradient[i] + decay * value[i]);
      break;
    case op::OptimizerKind::momentum:
      for (std::int64_t i = 0; i < count; ++i) {
        first[i] = momentum * first[i] + gradient[i] + decay * value[i];
        value[i] -= rate * first[i];
      }
      break;
    case op::OptimizerKind::nesterov:
      for (std::int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = momentum * first[i] + g;
        value[i] -= rate * (g + momentum * first[i]);
      }
      break;
    case op::OptimizerKind::rmsprop:
      for (std::int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = rule.decay * first[i] + (1 - rule.decay) * g * g;
        second[i] = momentum * second[i] + rate * g / std::sqrt(first[i] + epsilon);
        value[i] -= second[i];
      }
      break;
    case op::OptimizerKind::adam:
      for (std::int64_t i = 0; i < count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = rule.beta1 * first[i] + (1 - rule.beta1) * g;
        second[i] = rule.beta2 * second[i] + (1 - rule.beta2) * g * g;
        value[i] -= rates.adam_rate * first[i] / (std::sqrt(second[i]) + epsilon);
      }
      break;
  }
}

RuleArrays from(const op::OptimizerRule& rule, const RuleArrays& arrays, std::int64_t begin) {
  const int states = op::state_count(rule.kind);
  return {.values = arrays.values + begin,
          .first_state = states > 0 ? arrays.first_state + begin : nullptr,
          .second_state = states > 1 ? arrays.second_state + begin : nullptr};
}

}  // namespace

RuleRates::RuleRates(const op::OptimizerRule& rule, float rate, std::uint64_t step)
    : learning_rate(rate), adam_rate(rate) {
  if (rule.kind != op::OptimizerKind::adam) return;
  const auto t = static_cast<double>(step + 1);
  adam_rate = static_cast<float>(rate * std::sqrt(1 - std::pow(static_cast<double>(rule.beta2), t)) /
                                 (1 - std::pow(static_cast<double>(rule.beta1), t)));
}

void apply_rule(const op::OptimizerRule& rule, const RuleRates& rates, const RuleArrays& arrays, const float* gradient,
                RuleRange range) {
  update(rule, rates, from(rule, arrays, range.begin), gradient + range.begin, range.count);
}

void apply_mean(const op::OptimizerRule& rule, const RuleRates& rates, const RuleArrays& arrays,
                const MeanGradient& mean, RuleRange range) {
  alignas(64) float block[kMeanBlock];
  for (std::int64_t done = 0; done < range.count; done += kMeanBlock) {
    const RuleRange part{range.begin + done, std::min(kMeanBlock, range.count - done)};
    take_mean(mean, part, block);
    update(rule, rates, from(rule, arrays, part.begin), block, part.count);
  }
}

}  // namespace trireme
