#include <algorithm>
#include <cstring>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/optim/apply_rule.hpp"

namespace trireme::onednn {
namespace {

// A piece of one variable: the unit of work, so that many small variables cost one parallel region together.
struct Piece {
  std::size_t pair;
  RuleRange range;
};

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, const dnnl::engine&) {
  std::vector<Piece> pieces;
  std::int64_t total = 0;
  for (std::size_t pair = 0; 1 + 2 * pair < request.inputs.size(); ++pair) {
    const TensorDesc& variable = request.inputs[1 + 2 * pair];
    const std::int64_t elements = variable.layout.elements(variable.shape);
    total += elements;
    for (std::int64_t begin = 0; begin < elements; begin += kRulePiece) {
      pieces.push_back({pair, {begin, std::min(kRulePiece, elements - begin)}});
    }
  }
  const int states = op::state_count(operation.rule.kind);
  const auto count = static_cast<std::int64_t>(pieces.size());
  KernelChoice choice = own_kernel(request, [=, pieces = std::move(pieces)](const Operands& operands,
                                                                            const RunContext& context) {
    const RuleRates rates(operation.rule, *operands.input(0), context.step);
    // Each group updates a share of the values, which all of them use.
    const std::int64_t begin = count * context.group / context.groups;
    const std::int64_t end = count * (context.group + 1) / context.groups;
#pragma omp parallel for schedule(static) if (total / context.groups > kParallelElements)
    for (std::int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[static_cast<std::size_t>(i)];
      const RuleArrays arrays{.values = operands.variable(1 + 2 * piece.pair),
                              .first_state = states > 0 ? operands.state(piece.pair, 0) : nullptr,
                              .second_state = states > 1 ? operands.state(piece.pair, 1) : nullptr};
      if (context.groups == 1) {
        apply_rule(operation.rule, rates, arrays, operands.input(2 + 2 * piece.pair), piece.range);
      } else {
        apply_mean(operation.rule, rates, arrays,
                   {.gradients = operands.gradients(piece.pair), .weights = {}, .count = context.groups}, piece.range);
      }
    }
  });
  // A variable stays as it is, and its gradient comes in the same order.
  for (std::size_t i = 1; i < request.inputs.size(); ++i) choice.inputs[i] = request.inputs[(i - 1) / 2 * 2 + 1].layout;
  return choice;
}

KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& variable = request.inputs[0];
  const std::int64_t elements = variable.layout.elements(variable.shape);
  KernelChoice choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
    float* to = operands.variable(0);
    const float* value = operands.input(1);
    const float decay = operation.decay;
    const auto share = static_cast<float>((1 - static_cast<double>(decay)) * operation.scale);
#pragma omp parallel for simd schedule(static) if (elements > kParallelElements)
    for (std::int64_t i = 0; i < elements; ++i) to[i] = decay * to[i] + share * value[i];
  });
  choice.inputs = {variable.layout, variable.layout};
  return choice;
}

KernelChoice make(const op::Assign&, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& variable = request.inputs[0];
  const auto bytes = static_cast<std::size_t>(variable.bytes());
  KernelChoice choice = own_kernel(request, [bytes](const Operands& operands, const RunContext&) {
    std::memmove(operands.variable(0), operands.input(1), bytes);  // memmove: a variable may be assigned to itself
  });
  choice.inputs = {variable.layout, variable.layout};
  return choice;
}

}  // namespace trireme::onednn
