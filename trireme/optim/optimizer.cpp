#include "trireme/optim/optimizer.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

constexpr std::array kOptimizers{op::OptimizerKind::sgd, op::OptimizerKind::momentum, op::OptimizerKind::nesterov,
                                 op::OptimizerKind::rmsprop, op::OptimizerKind::adam};

void check_variable(const Graph& graph, Tensor variable) {
  if (!variable) bad_input("minimize: a variable is an empty tensor");
  if (variable.graph != &graph) bad_input("minimize: a variable belongs to another graph than the loss");
  const Node& node = graph.node(variable);
  if (node.as<op::Variable>() == nullptr) {
    bad_input("minimize: '{}' ({}) is no variable; only variables can be trained", node.name, name_of(node.op));
  }
}

}  // namespace

op::OptimizerRule optimizer_rule(op::OptimizerKind kind, float weight_decay) {
  op::OptimizerRule rule{.kind = kind, .weight_decay = weight_decay};
  rule.epsilon = kind == op::OptimizerKind::adam ? 1e-8f : 1.0f;
  validate(rule);
  return rule;
}

op::OptimizerKind parse_optimizer(std::string_view name) {
  std::string known;
  for (const op::OptimizerKind kind : kOptimizers) {
    if (to_string(kind) == name) return kind;
    known += known.empty() ? "" : ", ";
    known += to_string(kind);
  }
  bad_input("unknown optimizer '{}'; choose one of {}", name, known);
}

bool is_batch_norm_parameter(const Graph& graph, Tensor variable) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [&](const Node& node) {
    return node.as<op::BatchNorm>() != nullptr &&
           std::find(node.inputs.begin() + 1, node.inputs.end(), variable) != node.inputs.end();
  });
}

std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, Tensor learning_rate,
                             std::vector<Tensor> variables) {
  return minimize(
      loss, [&rule](Tensor) { return rule; }, learning_rate, std::move(variables));
}

LossScale add_loss_scale(Graph& graph, float initial, std::int64_t growth_interval) {
  if (!(initial >= op::kLeastLossScale && initial <= op::kMostLossScale)) {
    bad_input("the loss scale begins with {}, expected a number from 2^-24 to 2^24", initial);
  }
  const Graph::Scope scope(graph, "loss_scale");
  const auto scalar = [&graph](float value, const char* name) {
    return variable(graph, {}, op::Initializer::constant(value), name, false);
  };
  return {.scale = scalar(initial, "scale"),
          .good_updates = scalar(0, "good_updates"),
          .skipped_updates = scalar(0, "skipped_updates"),
          .growth_interval = growth_interval};
}

std::vector<Tensor> minimize(Tensor loss, const RuleFor& rule, Tensor learning_rate, std::vector<Tensor> variables,
                             const LossScale* scale) {
  if (!loss || loss.graph == nullptr) bad_input("minimize: the loss is an empty tensor");
  Graph& graph = *loss.graph;
  if (variables.empty()) variables = graph.trainable_variables();
  if (variables.empty()) bad_input("minimize: the graph has no trainable variable");
  for (std::size_t i = 0; i < variables.size(); ++i) {
    check_variable(graph, variables[i]);
    if (std::find(variables.begin(), variables.begin() + static_cast<std::ptrdiff_t>(i), variables[i]) !=
        variables.begin() + static_cast<std::ptrdiff_t>(i)) {
      bad_input("minimize: variable '{}' is listed twice", graph.node(variables[i]).name);
    }
  }

  const Tensor minimized =
      scale == nullptr ? loss : binary(op::BinaryKind::multiply, loss, scale->scale, "scaled_loss");
  const std::vector<Tensor> diffs = gradients(graph, minimized, variables);
  const Graph::Scope scope(graph, "update");
  Tensor rates = learning_rate;
  if (scale != nullptr) {
    std::vector<Tensor> inputs{learning_rate, scale->scale};
    inputs.insert(inputs.end(), diffs.begin(), diffs.end());
    rates = graph.add(op::UnscaledRates{}, std::move(inputs), "rates");
  }
  std::vector<Tensor> updates;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const op::OptimizerRule own = rule(variables[i]);
    validate(own);
    updates.push_back(
        graph.add(op::ApplyGradients{own}, {rates, variables[i], diffs[i]}, graph.node(variables[i]).name));
  }
  if (scale != nullptr) {
    updates.push_back(graph.add(op::UpdateLossScale{scale->growth_interval},
                                {scale->scale, scale->good_updates, scale->skipped_updates, rates}, "loss_scale"));
  }
  updates.insert(updates.end(), graph.side_updates.begin(), graph.side_updates.end());
  return updates;
}

std::vector<Tensor> minimize(Tensor loss, const op::OptimizerRule& rule, float learning_rate) {
  if (!std::isfinite(learning_rate) || learning_rate <= 0) {
    bad_input("minimize: the learning rate is {}, expected a finite number above 0", learning_rate);
  }
  if (!loss || loss.graph == nullptr) bad_input("minimize: the loss is an empty tensor");
  return minimize(loss, rule, constant(*loss.graph, learning_rate, "learning_rate"));
}

}  // namespace trireme
