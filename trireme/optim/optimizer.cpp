#include "trireme/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

void check_variable(const Graph& graph, Tensor variable) {
  if (!variable) bad_input("minimize: a variable is an empty tensor");
  if (variable.graph != &graph) bad_input("minimize: a variable belongs to a different graph than the loss");
  const Node& node = graph.node(variable);
  if (node.as<op::Variable>() == nullptr) {
    bad_input("minimize: '{}' ({}) is not a variable; only variables can be trained", node.name, name_of(node.op));
  }
}

}  // namespace

op::OptimizerRule optimizer_rule(op::OptimizerKind kind, float weight_decay) {
  op::OptimizerRule rule{.kind = kind, .weight_decay = weight_decay};
  for (const op::DefaultNumber& number : op::info(kind).numbers) rule.*number.member = number.value;
  validate(rule);
  return rule;
}

op::OptimizerKind parse_optimizer(std::string_view name) {
  for (const op::OptimizerInfo& info : op::kOptimizers) {
    if (info.name == name) return info.kind;
  }
  bad_input("unknown optimizer '{}'; choose one of {}", name, optimizer_names());
}

std::string optimizer_names() {
  std::string names;
  for (const op::OptimizerInfo& info : op::kOptimizers) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  }
  return names;
}

std::string option_name(const op::RuleNumber& number) {
  std::string name(number.name);
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::string number_help(const op::RuleNumber& number) {
  std::string users;
  for (const op::OptimizerInfo& info : op::kOptimizers) {
    for (const op::DefaultNumber& own : info.numbers) {
      if (own.member != number.member) continue;
      users += fmt::format("{}{} ({}{:g})", users.empty() ? "For " : ", ", info.name, users.empty() ? "default: " : "",
                           own.value);
    }
  }
  return users;
}

std::string describe(const op::OptimizerRule& rule) {
  const op::OptimizerInfo& info = op::info(rule.kind);
  std::string text(info.name);
  for (const op::RuleNumber& number : op::kRuleNumbers) {
    if (!op::uses(rule.kind, number)) continue;
    // A single number needs no name: "momentum 0.9".
    const std::string name = info.numbers.size() == 1 ? "" : fmt::format(", {}", number.name);
    text += fmt::format("{} {:g}", name, rule.*number.member);
  }
  return text + fmt::format(", weight decay {:g}", rule.weight_decay);
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
    bad_input("the initial loss scale is {}, expected a number from 2^-24 to 2^24", initial);
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
