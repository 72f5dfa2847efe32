// The graph of one step: the network and, when training, gradients and the optimizer. Made by
// PreparedStep and by `trireme models --plan`, so that the plan shown is the plan that is measured.
#pragma once

#include <optional>
#include <vector>

#include "trireme/optim/optimizer.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct StepGraph {
  Model model;
  Tensor learning_rate;                 // placeholder; none when forward only
  std::optional<LossScale> loss_scale;  // where gradients are fp16
  std::vector<Tensor> fetches;          // of one step: the loss first, then the accuracy if it is wanted
};

// groups: of cores that the batch is split over; the graph is that of one group's share.
StepGraph build_step(Graph& graph, const StepConfig& config, int groups = 1);

// Of all variables that are trained, and so of all gradients.
std::int64_t trainable_bytes(const Graph& graph);

}  // namespace trireme::train
