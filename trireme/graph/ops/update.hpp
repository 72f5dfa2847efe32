// Operations that write variables, and dynamic loss scaling. Updates come last in a run's order: after every operation
// that reads the old value.
#pragma once

#include "trireme/graph/ops/common.hpp"
#include "trireme/graph/ops/optimizers.hpp"

namespace trireme::op {

// Throws Error(bad_input) for a number that is not finite or outside its range.
void validate(const OptimizerRule& rule);

// inputs: learning_rate: scalar, then variable and gradient for each variable; outputs: none. In place of the learning
// rate there may be two values, as UnscaledRates gives them: the learning rate, and a factor of the
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

// Dynamic loss scaling is for gradients that are stored in fp16: its smallest numbers are larger than many gradients
// are. The loss is multiplied by a scale before gradients are taken, and the update divides by it again. The scale goes
// as high as gradients allow: an update whose gradients are not finite is left out and halves it, many good ones in a
// row double it. minimize() (optim/optimizer.hpp) puts these operations into the graph.

// What ApplyGradients takes in place of a learning rate: the learning rate, and the factor that gradients have to be
// multiplied by: 1/scale, or 0 where one of them is not finite. Replicas decide alike: by gradients that are exchanged.
// inputs: learning_rate: scalar, scale: scalar, then the gradients of all variables; outputs: rates: 2 values.
struct UnscaledRates {
  static constexpr const char* kName = "unscaled_rates";
};

// After an update with rates. inputs: scale, good_updates (since the scale was changed), skipped_updates (in all):
// scalar variables that are written, rates; outputs: none.
struct UpdateLossScale {
  std::int64_t growth_interval = 2000;  // good updates in a row that double the scale
  static constexpr const char* kName = "update_loss_scale";
};
// Beyond these the scale does not go: gradients that overflow even so are those of a training that has failed.
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
