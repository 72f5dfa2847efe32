#include <cmath>
#include <cstring>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {
namespace {

// One value, its gradient with the weight decay added, and its state; the formulas are at op::OptimizerRule.
// Step t counts from 1.
struct Update {
  const op::OptimizerRule& rule;
  double learning_rate;
  double gradient_factor;
  double t;

  void apply(float& value, float gradient, float* first, float* second) const {
    const double g = gradient_factor * gradient + static_cast<double>(rule.weight_decay) * value;
    switch (rule.kind) {
      case op::OptimizerKind::sgd:
        value = static_cast<float>(value - learning_rate * g);
        break;
      case op::OptimizerKind::momentum: {
        const double m = static_cast<double>(rule.momentum) * *first + g;
        *first = static_cast<float>(m);
        value = static_cast<float>(value - learning_rate * m);
        break;
      }
      case op::OptimizerKind::nesterov: {
        const double m = static_cast<double>(rule.momentum) * *first + g;
        *first = static_cast<float>(m);
        value = static_cast<float>(value - learning_rate * (g + rule.momentum * m));
        break;
      }
      case op::OptimizerKind::rmsprop: {
        const double s = static_cast<double>(rule.decay) * *first + (1 - static_cast<double>(rule.decay)) * g * g;
        const double m = static_cast<double>(rule.momentum) * *second + learning_rate * g / std::sqrt(s + rule.epsilon);
        *first = static_cast<float>(s);
        *second = static_cast<float>(m);
        value = static_cast<float>(value - m);
        break;
      }
      case op::OptimizerKind::adam: {
        const double beta1 = rule.beta1, beta2 = rule.beta2;
        const double m = beta1 * *first + (1 - beta1) * g;
        const double v = beta2 * *second + (1 - beta2) * g * g;
        const double rate = learning_rate * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t));
        *first = static_cast<float>(m);
        *second = static_cast<float>(v);
        value = static_cast<float>(value - rate * m / (std::sqrt(v) + rule.epsilon));
        break;
      }
    }
  }
};

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request) {
  std::vector<std::int64_t> elements;  // of each variable
  for (std::size_t i = 1; i < request.inputs.size(); i += 2) elements.push_back(request.inputs[i].shape.elements());
  const int states = op::state_count(operation.rule.kind);
  const bool scaled = request.inputs[0].shape.rank() == 1;
  return plain_loops(request, [=](const Operands& operands, const RunContext& context) {
    const float* const rates = operands.input(0);
    const Update update{operation.rule, rates[0], scaled ? rates[1] : 1.0, static_cast<double>(context.step + 1)};
    if (update.gradient_factor == 0) return;
    for (std::size_t pair = 0; pair < elements.size(); ++pair) {
      float* values = operands.variable(1 + 2 * pair);
      const float* gradients = operands.input(2 + 2 * pair);
      float* first = states > 0 ? operands.state(pair, 0) : nullptr;
      float* second = states > 1 ? operands.state(pair, 1) : nullptr;
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < elements[pair]; ++i) {
        update.apply(values[i], gradients[i], states > 0 ? first + i : nullptr, states > 1 ? second + i : nullptr);
      }
    }
  });
}

KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request) {
  std::vector<std::int64_t> elements;  // of each variable
  for (std::size_t i = 0; i < request.inputs.size(); i += 2) elements.push_back(request.inputs[i].shape.elements());
  return plain_loops(request, [=](const Operands& operands, const RunContext&) {
    const double decay = operation.decay;
    for (std::size_t pair = 0; pair < elements.size(); ++pair) {
      const double share = (1 - decay) * operation.scales[pair];
      float* variable = operands.variable(2 * pair);
      const float* value = operands.input(2 * pair + 1);
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < elements[pair]; ++i) {
        variable[i] = static_cast<float>(decay * variable[i] + share * value[i]);
      }
    }
  });
}

KernelChoice make(const op::Assign&, const KernelRequest& request) {
  const auto bytes = static_cast<std::size_t>(request.inputs[0].shape.elements()) * sizeof(float);
  return plain_loops(request, [bytes](const Operands& operands, const RunContext&) {
    std::memmove(operands.variable(0), operands.input(1), bytes);  // memmove: a variable may be assigned to itself
  });
}

}  // namespace trireme::reference
