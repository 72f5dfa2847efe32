// Operations that write variables. They come last in a run's order: after every operation that reads the old value.
#pragma once

#include <string_view>

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

enum class OptimizerKind : std::uint8_t { sgd, momentum, nesterov, rmsprop, adam };
std::string_view to_string(OptimizerKind kind);

// The rule of one update. g is gradient + weight_decay · value, lr the learning rate, t the count of updates from 1:
//   sgd       value −= lr · g
//   momentum  m = momentum·m + g;  value −= lr·m
//   nesterov  m = momentum·m + g;  value −= lr·(g + momentum·m)
//   rmsprop   s = decay·s + (1 − decay)·g²;  m = momentum·m + lr·g/sqrt(s + epsilon);  value −= m
//             (TensorFlow's; s starts at 1)
//   adam      m = beta1·m + (1 − beta1)·g;  v = beta2·v + (1 − beta2)·g²;
//             value −= lr·sqrt(1 − beta2^t)/(1 − beta1^t) · m/(sqrt(v) + epsilon)
struct OptimizerRule {
  OptimizerKind kind = OptimizerKind::sgd;
  float weight_decay = 0;
  float momentum = 0.9f;
  float decay = 0.9f;    // rmsprop
  float beta1 = 0.9f;    // adam
  float beta2 = 0.999f;  // adam
  float epsilon = 1.0f;  // rmsprop 1.0, adam 1e-8: see optimizer_rule in optim/
  bool operator==(const OptimizerRule&) const = default;
};
// Throws Error(bad_input) for a number that is not finite or outside its range.
void validate(const OptimizerRule& rule);
// Arrays of state that the rule keeps beside each value: 0, 1 or 2. rmsprop: s, m; adam: m, v.
int state_count(OptimizerKind kind);
float initial_state(OptimizerKind kind, int index);

// inputs: learning_rate: scalar, then variable and gradient for each variable; outputs: none. In place of the learning
// rate there may be two values, as UnscaledRates (loss_scale.hpp) gives them: the learning rate, and a factor of the
// gradients. If that is 0, nothing is updated. Built with one variable each; fusing joins neighbours in the arena into
// one update over the whole range.
struct ApplyGradients {
  OptimizerRule rule;
  static constexpr const char* kName = "apply_gradients";
};

// variable = decay·variable + (1 − decay)·scale·value. inputs: variable and value for each variable; outputs: none.
// Built with one variable each; fusing joins those of one decay.
struct MovingAverage {
  float decay = 0.9f;
  std::vector<float> scales = {1.0f};  // one for each variable
  static constexpr const char* kName = "moving_average";
};

// variable = value. inputs: variable, value; outputs: none.
struct Assign {
  static constexpr const char* kName = "assign";
};

std::vector<TensorType> infer(const ApplyGradients& op, Types inputs);
std::vector<TensorType> infer(const MovingAverage& op, Types inputs);
std::vector<TensorType> infer(const Assign& op, Types inputs);
Cost cost(const ApplyGradients& op, Types inputs, Types outputs);
Cost cost(const MovingAverage& op, Types inputs, Types outputs);
Cost cost(const Assign& op, Types inputs, Types outputs);

}  // namespace trireme::op
