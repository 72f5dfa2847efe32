#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request) {
  std::vector<std::int64_t> elements;  // of each variable
  for (std::size_t i = 1; i < request.inputs.size(); i += 2) elements.push_back(request.inputs[i].shape.elements());
  const bool scaled = request.inputs[0].shape.rank() == 1;
  return plain_loops(request, [=](const Operands& operands, const RunContext& context) {
    const float* const given = operands.input(0);
    const double gradient_factor = scaled ? given[1] : 1.0;
    if (gradient_factor == 0) return;
    const op::Rates<double> rates = op::rates_at<double>(operation.rule, given[0], context.step);
    op::Optimizers::visit(operation.rule.kind, [&](auto optimizer) {
      for (std::size_t pair = 0; pair < elements.size(); ++pair) {
        float* values = operands.variable(1 + 2 * pair);
        const float* gradients = operands.input(2 + 2 * pair);
        float* const* states = operands.states(pair).data();
#pragma omp parallel for schedule(static)
        for (std::int64_t i = 0; i < elements[pair]; ++i) {
          const double gradient = gradient_factor * gradients[i];
          op::update_element<decltype(optimizer)>(operation.rule, rates, gradient, values[i], states, i);
        }
      }
    });
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
  const auto bytes = request.inputs[0].shape.elements() * sizeof(float);
  return plain_loops(request, [bytes](const Operands& operands, const RunContext&) {
    std::memmove(operands.variable(0), operands.input(1), bytes);  // memmove: a variable may be assigned to itself
  });
}

KernelChoice make(const op::UnscaledRates&, const KernelRequest& request) {
  std::vector<std::int64_t> elements;  // of each gradient
  for (std::size_t i = 2; i < request.inputs.size(); ++i) elements.push_back(request.inputs[i].shape.elements());
  return plain_loops(request, [elements](const Operands& operands, const RunContext&) {
    bool finite = true;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      const float* const gradient = operands.input(i + 2);
      finite =
          finite && std::all_of(gradient, gradient + elements[i], [](float value) { return std::isfinite(value); });
    }
    operands.output()[0] = *operands.input(0);
    operands.output()[1] = finite ? 1.0f / *operands.input(1) : 0.0f;
  });
}

KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request) {
  const auto interval = static_cast<float>(operation.growth_interval);
  return plain_loops(request, [interval](const Operands& operands, const RunContext&) {
    float& scale = *operands.variable(0);
    float& good_updates = *operands.variable(1);
    float& skipped_updates = *operands.variable(2);
    const bool skipped = operands.input(3)[1] == 0;
    if (skipped) {
      scale = std::max(scale / 2, op::kLeastLossScale);
      good_updates = 0;
      skipped_updates += 1;
    } else if (good_updates += 1; good_updates >= interval) {
      scale = std::min(scale * 2, op::kMostLossScale);
      good_updates = 0;
    }
  });
}

}  // namespace trireme::reference
