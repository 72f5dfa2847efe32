#include <algorithm>
#include <cmath>

#include "trireme/backend/reference/kernels.hpp"
#include "trireme/backend/reference/loops.hpp"

namespace trireme::reference {

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
