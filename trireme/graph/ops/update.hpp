// Operations that write variables. They come last in a run's order: after every operation that reads the old value.
#pragma once

#include "trireme/graph/ops/common.hpp"
#include "trireme/graph/ops/optimizers.hpp"

namespace trireme::op {

// Throws Error(bad_input) for a number that is not finite or outside its range.
void validate(const OptimizerRule& rule);

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
