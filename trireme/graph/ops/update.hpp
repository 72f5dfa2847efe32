// Operations that write variables, after all readers of the old value, and dynamic loss scaling.
#pragma once

#include "trireme/graph/ops/common.hpp"
#include "trireme/graph/ops/optimizers.hpp"

namespace trireme::op {

void validate(const OptimizerRule& rule);  // Error(bad_input) if a number is not finite or out of range

// inputs: learning_rate: scalar, then variable and gradient for each variable; outputs: none. UnscaledRates' two
// values, learning rate and gradient factor, can replace the learning rate; if the factor is 0, nothing is updated.
// Built with one variable each; fusing joins neighbors in the arena into one update over the whole range.
struct ApplyGradients {
  OptimizerRule rule;
  static constexpr const char* kName = "apply_gradients";
};

// variable = decay·variable + (1 − decay)·scale·value. inputs: variable and value for each variable; outputs: none.
// Built with one variable each; fusing joins those with equal decay.
struct MovingAverage {
  float decay = 0.9f;
  std::vector<float> scales = {1.0f};  // one for each variable
  static constexpr const char* kName = "moving_average";
};

// variable = value. inputs: variable, value; outputs: none.
struct Assign {
  static constexpr const char* kName = "assign";
};

// Dynamic loss scaling is for fp16 gradients, many of which would be too small to represent. The loss is multiplied by
// a scale and the update divides by it. Non-finite gradients skip an update and halve the scale; many good updates in a
// row double it. minimize() (optim/optimizer.hpp) adds these operations.

// Replaces the learning rate of ApplyGradients: the learning rate and the gradient factor, 1/scale or 0 if a gradient
// is not finite. Replicas decide alike, from the exchanged gradients.
// inputs: learning_rate: scalar, scale: scalar, then the gradients of all variables; outputs: rates: 2 values.
struct UnscaledRates {
  static constexpr const char* kName = "unscaled_rates";
};

// Runs after an update. inputs: scale, good_updates (since the scale changed), skipped_updates (in total): scalar
// variables that are written, rates; outputs: none.
struct UpdateLossScale {
  std::int64_t growth_interval = 2000;  // consecutive good updates that double the scale
  static constexpr const char* kName = "update_loss_scale";
};
// Limits of the scale: if gradients overflow even here, training has failed.
inline constexpr float kLeastLossScale = 0x1p-24f;
inline constexpr float kMostLossScale = 0x1p24f;

std::vector<TensorType> infer(const ApplyGradients& op, Types inputs);
std::vector<TensorType> infer(const MovingAverage& op, Types inputs);
std::vector<TensorType> infer(const Assign& op, Types inputs);
std::vector<TensorType> infer(const UnscaledRates& op, Types inputs);
std::vector<TensorType> infer(const UpdateLossScale& op, Types inputs);
Cost cost(const ApplyGradients& op, Types inputs, Types outputs);
Cost cost(const MovingAverage& op, Types inputs, Types outputs);
Cost cost(const Assign& op, Types inputs, Types outputs);
Cost cost(const UnscaledRates& op, Types inputs, Types outputs);
Cost cost(const UpdateLossScale& op, Types inputs, Types outputs);

}  // namespace trireme::op
