// The graph of one step: the network and, when training, gradients and the optimizer. Made by PreparedStep and by
// `trireme models --plan`, so that the plan shown is the plan measured.
#pragma once

#include <optional>
#include <vector>

#include "trireme/optim/optimizer.hpp"
#include "trireme/train/step_config.hpp"

namespace trireme::train {

struct StepGraph {
  Model model;
  Tensor learning_rate;                 // placeholder; none if forward only
  std::optional<LossScale> loss_scale;  // if gradients are fp16
  std::vector<Tensor> fetches;          // of one step: the loss, then the accuracy if wanted
};

// groups: the core groups the batch is split over; the graph covers one group's share.
StepGraph build_step(Graph& graph, const StepConfig& config, int groups = 1);

std::int64_t trainable_bytes(const Graph& graph);  // of trained variables, and so of gradients

}  // namespace trireme::train
