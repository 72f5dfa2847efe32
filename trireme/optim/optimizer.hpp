// Optimizers and learning-rate schedules: what a user writes, and what it becomes in the graph.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme {

// The rule with the optimizer's defaults, those of tf_cnn_benchmarks if it has the optimizer.
op::OptimizerRule optimizer_rule(op::OptimizerKind kind, float weight_decay = 0);
// By its name; anything else is an error that lists them.
op::OptimizerKind parse_optimizer(std::string_view name);
std::string optimizer_names();                          // with commas
std::string option_name(const op::RuleNumber& number);  // with dashes
// "Of adam (default: 0.999), lion (0.99)": what help says of a number.
std::string number_help(const op::RuleNumber& number);
// "momentum 0.9, weight decay 4e-05"
std::string describe(const op::OptimizerRule& rule);

// The state of dynamic loss scaling (graph/ops/update.hpp), as scalar variables that are not trained: they go into
// checkpoints.
struct LossScale {
  Tensor scale;
  Tensor good_updates;     // since the scale was changed
  Tensor skipped_updates;  // in all
  std::int64_t growth_interval = 2000;
};
LossScale add_loss_scale(Graph& graph, float initial = 65536, std::int64_t growth_interval = 2000);

// Adds gradients of the loss and one ApplyGradients per variable. Returns these, in the variables' order, followed by
// the graph's side_updates as they are now, so that fetching the result trains one step completely, running statistics
// included. The learning rate is a scalar tensor, fed or constant; as a number it must be finite and above 0. No
// variables given: all trainable ones, each of which the loss must depend on.
std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, Tensor learning_rate,
                             std::vector<Tensor> variables = {});
std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, float learning_rate);
// The same with a rule for each variable, and a scaled loss if there is a scale. A step with gradients that are not
// finite trains no variable, but it counts: adam's t goes on.
using RuleFor = std::function<op::OptimizerRule(Tensor variable)>;
std::vector<Tensor> minimize(Tensor loss, const RuleFor& rule, Tensor learning_rate, std::vector<Tensor> variables = {},
                             const LossScale* scale = nullptr);

// Scales and offsets of batch norm, which are often left out of weight decay.
bool is_batch_norm_parameter(const Graph& graph, Tensor variable);

}  // namespace trireme
