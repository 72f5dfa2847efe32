// Dynamic loss scaling, for gradients that are stored in fp16: its smallest numbers are larger than many gradients are.
// The loss is multiplied by a scale before gradients are taken, and the update divides by it again. The scale goes as
// high as gradients allow: an update whose gradients are not finite is left out and halves it, many good ones in a row
// double it. minimize() (optim/optimizer.hpp) puts these operations into the graph.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

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

std::vector<TensorType> infer(const UnscaledRates& op, Types inputs);
std::vector<TensorType> infer(const UpdateLossScale& op, Types inputs);
Cost cost(const UnscaledRates& op, Types inputs, Types outputs);
Cost cost(const UpdateLossScale& op, Types inputs, Types outputs);

}  // namespace trireme::op
