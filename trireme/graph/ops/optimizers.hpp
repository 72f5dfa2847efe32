// The optimizers, one struct each: name, hyperparameters, state arrays and formula. The only definition for backends,
// parameter servers, command line and records. To add one: docs/adding-an-optimizer.md.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "trireme/base/simd.hpp"

#ifdef __CUDACC__
#define TRIREME_FORMULA __host__ __device__ TRIREME_INLINE
#else
#define TRIREME_FORMULA TRIREME_INLINE
#endif

namespace trireme::op {

enum class OptimizerKind : std::uint8_t { sgd, momentum, nesterov, rmsprop, adam, adamw, lion };

// An optimizer and its hyperparameters. optimizer_rule (optim/) sets the defaults of each.
struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::sgd;
  float weight_decay = 0;  // of every optimizer
  float momentum = 0.9f;
  float decay = 0.9f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1.0f;
  bool operator==(const OptimizerRule&) const = default;
};

// A hyperparameter under its name in options and records.
enum class NumberRange : std::uint8_t { not_negative, positive, share };  // share: 0 <= x < 1
using NumberMember = float OptimizerRule::*;
struct RuleNumber {
  std::string_view name;
  NumberMember member;
  NumberRange range;
};
inline constexpr std::array kRuleNumbers{
    RuleNumber{"weight_decay", &OptimizerRule::weight_decay, NumberRange::not_negative},
    RuleNumber{"momentum", &OptimizerRule::momentum, NumberRange::share},
    RuleNumber{"rmsprop_decay", &OptimizerRule::decay, NumberRange::share},
    RuleNumber{"beta1", &OptimizerRule::beta1, NumberRange::share},
    RuleNumber{"beta2", &OptimizerRule::beta2, NumberRange::share},
    RuleNumber{"epsilon", &OptimizerRule::epsilon, NumberRange::positive},
};
struct DefaultNumber {
  NumberMember member;
  float value;
};

// A step's rates for a formula. T is float, or double for the reference backend.
template <typename T>
struct Rates {
  T learning_rate;
  T corrected;  // the optimizer's corrected_rate
};

// Defaults for optimizers. Each adds
//   update(rule, rates, gradient, value, state)
// for one element: it changes value and state, the array of the element's states. Zeros must stay zero, since padding
// is updated too.
struct OptimizerBase {
  static constexpr std::array<DefaultNumber, 0> kNumbers{};  // used besides weight_decay
  static constexpr std::array<float, 0> kStates{};           // initial values of the state arrays
  // Default learning rate: a factor of one that suits momentum, or, if not 0, a fixed rate.
  static constexpr double kRateFactor = 1, kFixedRate = 0;

  // t counts updates from 1.
  template <typename T>
  TRIREME_FORMULA static T corrected_rate(const OptimizerRule& /*rule*/, T learning_rate, T /*t*/) {
    return learning_rate;
  }
  template <typename T>
  TRIREME_FORMULA static T decayed(const OptimizerRule& rule, T gradient, T value) {
    const T decay = rule.weight_decay;
    return gradient + decay * value;
  }
  // 1 − base^t; in float, powers near 1 would lose digits.
  template <typename T>
  TRIREME_FORMULA static T one_minus_power(T base, T t) {
    if constexpr (std::is_same_v<T, float>) {
      return -std::expm1(t * std::log(base));
    } else {
      return 1 - std::pow(base, t);
    }
  }
};

struct Sgd : OptimizerBase {
  static constexpr OptimizerKind kKind = OptimizerKind::sgd;
  static constexpr std::string_view kName = "sgd";
  static constexpr double kFlops = 2;  // per element, without weight decay
  static constexpr double kRateFactor = 5;

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T*) {
    value -= rates.learning_rate * decayed(rule, gradient, value);
  }
};

struct Momentum : OptimizerBase {
  static constexpr OptimizerKind kKind = OptimizerKind::momentum;
  static constexpr std::string_view kName = "momentum";
  static constexpr std::array kNumbers{DefaultNumber{&OptimizerRule::momentum, 0.9f}};
  static constexpr std::array kStates{0.0f};  // momentum
  static constexpr double kFlops = 4;

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    const T momentum = rule.momentum, decay = rule.weight_decay;
    state[0] = momentum * state[0] + gradient + decay * value;
    value -= rates.learning_rate * state[0];
  }
};

struct Nesterov : Momentum {
  static constexpr OptimizerKind kKind = OptimizerKind::nesterov;
  static constexpr std::string_view kName = "nesterov";
  static constexpr double kFlops = 6;

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    const T momentum = rule.momentum, g = decayed(rule, gradient, value);
    state[0] = momentum * state[0] + g;
    value -= rates.learning_rate * (g + momentum * state[0]);
  }
};

// TensorFlow's version: the mean square starts at 1.
struct RmsProp : OptimizerBase {
  static constexpr OptimizerKind kKind = OptimizerKind::rmsprop;
  static constexpr std::string_view kName = "rmsprop";
  static constexpr std::array kNumbers{DefaultNumber{&OptimizerRule::decay, 0.9f},
                                       DefaultNumber{&OptimizerRule::momentum, 0.9f},
                                       DefaultNumber{&OptimizerRule::epsilon, 1.0f}};
  static constexpr std::array kStates{1.0f, 0.0f};  // mean square, momentum
  static constexpr double kFlops = 11;

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    const T decay = rule.decay, momentum = rule.momentum, epsilon = rule.epsilon;
    const T g = decayed(rule, gradient, value);
    state[0] = decay * state[0] + (1 - decay) * g * g;
    state[1] = momentum * state[1] + rates.learning_rate * g / std::sqrt(state[0] + epsilon);
    value -= state[1];
  }
};

struct Adam : OptimizerBase {
  static constexpr OptimizerKind kKind = OptimizerKind::adam;
  static constexpr std::string_view kName = "adam";
  static constexpr std::array kNumbers{DefaultNumber{&OptimizerRule::beta1, 0.9f},
                                       DefaultNumber{&OptimizerRule::beta2, 0.999f},
                                       DefaultNumber{&OptimizerRule::epsilon, 1e-8f}};
  static constexpr std::array kStates{0.0f, 0.0f};  // first and second moment
  static constexpr double kFlops = 12;
  static constexpr double kFixedRate = 1e-4;  // its steps do not depend on the size of the gradients

  template <typename T>
  TRIREME_FORMULA static T corrected_rate(const OptimizerRule& rule, T learning_rate, T t) {
    const T beta1 = rule.beta1, beta2 = rule.beta2;
    return learning_rate * std::sqrt(one_minus_power(beta2, t)) / one_minus_power(beta1, t);
  }
  template <typename T>
  TRIREME_FORMULA static T step(const OptimizerRule& rule, const Rates<T>& rates, T g, T* state) {
    const T beta1 = rule.beta1, beta2 = rule.beta2, epsilon = rule.epsilon;
    state[0] = beta1 * state[0] + (1 - beta1) * g;
    state[1] = beta2 * state[1] + (1 - beta2) * g * g;
    return rates.corrected * state[0] / (std::sqrt(state[1]) + epsilon);
  }
  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    value -= step(rule, rates, decayed(rule, gradient, value), state);
  }
};

// Adam with decoupled weight decay (Loshchilov and Hutter, 2019).
struct AdamW : Adam {
  static constexpr OptimizerKind kKind = OptimizerKind::adamw;
  static constexpr std::string_view kName = "adamw";

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    const T decay = rule.weight_decay;
    value -= rates.learning_rate * decay * value + step(rule, rates, gradient, state);
  }
};

// Steps of fixed size in the direction of the momentum's sign (Chen et al., 2023).
struct Lion : OptimizerBase {
  static constexpr OptimizerKind kKind = OptimizerKind::lion;
  static constexpr std::string_view kName = "lion";
  static constexpr std::array kNumbers{DefaultNumber{&OptimizerRule::beta1, 0.9f},
                                       DefaultNumber{&OptimizerRule::beta2, 0.99f}};
  static constexpr std::array kStates{0.0f};  // momentum
  static constexpr double kFlops = 9;
  static constexpr double kFixedRate = 3e-5;

  template <typename T>
  TRIREME_FORMULA static void update(const OptimizerRule& rule, const Rates<T>& rates, T gradient, T& value, T* state) {
    const T beta1 = rule.beta1, beta2 = rule.beta2, decay = rule.weight_decay;
    const T direction = beta1 * state[0] + (1 - beta1) * gradient;
    const T sign = direction > 0 ? T{1} : direction < 0 ? T{-1} : T{0};
    state[0] = beta2 * state[0] + (1 - beta2) * gradient;
    value -= rates.learning_rate * (sign + decay * value);
  }
};

template <typename... Each>
struct OptimizerList {
  // Calls function(Each{}) for the optimizer of this kind.
  template <typename Function>
  static TRIREME_INLINE void visit(OptimizerKind kind, Function&& function) {
    (void)((kind == Each::kKind && (function(Each{}), true)) || ...);
  }
};
using Optimizers = OptimizerList<Sgd, Momentum, Nesterov, RmsProp, Adam, AdamW, Lion>;

// An optimizer as a run-time value.
struct OptimizerInfo {
  OptimizerKind kind;
  std::string_view name;
  std::span<const DefaultNumber> numbers;
  std::span<const float> states;
  double flops, rate_factor, fixed_rate;
};
template <typename... Each>
constexpr std::array<OptimizerInfo, sizeof...(Each)> infos(OptimizerList<Each...> /*list*/) {
  return {OptimizerInfo{Each::kKind, Each::kName, Each::kNumbers, Each::kStates, Each::kFlops, Each::kRateFactor,
                        Each::kFixedRate}...};
}
inline constexpr auto kOptimizers = infos(Optimizers{});
constexpr const OptimizerInfo& info(OptimizerKind kind) { return kOptimizers[static_cast<std::size_t>(kind)]; }
static_assert(std::all_of(kOptimizers.begin(), kOptimizers.end(),
                          [](const OptimizerInfo& each) { return &each == &info(each.kind); }));

constexpr bool uses(OptimizerKind kind, const RuleNumber& number) {  // besides weight_decay
  const auto is_it = [&number](const DefaultNumber& own) { return own.member == number.member; };
  return std::any_of(info(kind).numbers.begin(), info(kind).numbers.end(), is_it);
}
constexpr std::string_view to_string(OptimizerKind kind) { return info(kind).name; }
constexpr int state_count(OptimizerKind kind) { return static_cast<int>(info(kind).states.size()); }
constexpr float initial_state(OptimizerKind kind, int index) { return info(kind).states[index]; }
inline constexpr std::size_t kMostStates =
    std::max_element(kOptimizers.begin(), kOptimizers.end(), [](const OptimizerInfo& a, const OptimizerInfo& b) {
      return a.states.size() < b.states.size();
    })->states.size();

// Steps count from 0.
template <typename T = float>
Rates<T> rates_at(const OptimizerRule& rule, float learning_rate, std::uint64_t step) {
  double corrected = 0;
  Optimizers::visit(rule.kind, [&](auto optimizer) {
    corrected = optimizer.template corrected_rate<double>(rule, learning_rate, static_cast<double>(step + 1));
  });
  return {static_cast<T>(learning_rate), static_cast<T>(corrected)};
}

// Updates one element of arrays in memory, computing in T.
template <typename Optimizer, typename T>
TRIREME_INLINE void update_element(const OptimizerRule& rule, const Rates<T>& rates, T gradient, float& value,
                                   float* const* states, std::int64_t i) {
  constexpr std::size_t kCount = Optimizer::kStates.size();
  T new_value = value, state[kMostStates];
  for (std::size_t s = 0; s < kCount; ++s) state[s] = states[s][i];
  Optimizer::update(rule, rates, gradient, new_value, state);
  value = static_cast<float>(new_value);
  for (std::size_t s = 0; s < kCount; ++s) states[s][i] = static_cast<float>(state[s]);
}

}  // namespace trireme::op
