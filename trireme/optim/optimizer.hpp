// Optimizers as users name them, and their operations in the graph.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme {

// The rule with the optimizer's defaults, those of tf_cnn_benchmarks if it has the optimizer.
op::OptimizerRule optimizer_rule(op::OptimizerKind kind, float weight_decay = 0);
op::OptimizerKind parse_optimizer(std::string_view name);  // Error(bad_input) lists all names
std::string optimizer_names();                             // with commas
std::string option_name(const op::RuleNumber& number);     // with dashes
std::string number_help(const op::RuleNumber& number);     // "For adam (default: 0.999), lion (0.99)"
std::string describe(const op::OptimizerRule& rule);       // "momentum 0.9, weight decay 4e-05"

// State of dynamic loss scaling (graph/ops/update.hpp): untrained scalar variables, saved in checkpoints.
struct LossScale {
  Tensor scale;
  Tensor good_updates;     // since the scale changed
  Tensor skipped_updates;  // in total
  std::int64_t growth_interval = 2000;
};
LossScale add_loss_scale(Graph& graph, float initial = 65536, std::int64_t growth_interval = 2000);

// Adds gradients of the loss and one ApplyGradients per variable. Returns these in order, then the graph's current
// side_updates: fetching the result is a complete training step. The learning rate is a scalar tensor; as a number it
// must be finite and above 0. The loss must depend on all variables, by default the trainable ones.
std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, Tensor learning_rate,
                             std::vector<Tensor> variables = {});
std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, float learning_rate);
// With a rule per variable and maybe a scaled loss. A step with non-finite gradients only advances adam's t.
using RuleFor = std::function<op::OptimizerRule(Tensor variable)>;
std::vector<Tensor> minimize(Tensor loss, const RuleFor& rule, Tensor learning_rate, std::vector<Tensor> variables = {},
                             const LossScale* scale = nullptr);

// Scales and offsets of batch norm, often excluded from weight decay.
bool is_batch_norm_parameter(const Graph& graph, Tensor variable);

}  // namespace trireme
