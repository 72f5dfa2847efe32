#include <algorithm>
#include <cstring>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/backend/reference/kernels.hpp"
#include "trireme/optim/apply_rule.hpp"

namespace trireme::onednn {
namespace {

// A piece of one variable, the unit of work: many small variables need only one parallel region.
struct Piece {
  std::size_t pair;
  RuleRange range;
};

// The variables are inputs first, first + 2, ...
std::vector<Piece> pieces_of(const KernelRequest& request, std::size_t first) {
  std::vector<Piece> pieces;
  for (std::size_t pair = 0; first + 2 * pair < request.inputs.size(); ++pair) {
    const TensorDesc& variable = request.inputs[first + 2 * pair];
    const std::int64_t elements = variable.layout.elements(variable.shape);
    for (std::int64_t begin = 0; begin < elements; begin += kRulePiece) {
      pieces.push_back({pair, {begin, std::min(kRulePiece, elements - begin)}});
    }
  }
  return pieces;
}

std::int64_t elements_of(const std::vector<Piece>& pieces) {
  std::int64_t total = 0;
  for (const Piece& piece : pieces) total += piece.range.count;
  return total;
}

// Variables keep their layout; the values that come to them get the same.
void take_values_as_variables(const KernelRequest& request, std::size_t first, KernelChoice& choice) {
  for (std::size_t i = first; i < request.inputs.size(); i += 2) {
    choice.inputs[i] = choice.inputs[i + 1] = request.inputs[i].layout;
  }
}

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, const dnnl::engine&) {
  std::vector<Piece> pieces = pieces_of(request, 1);
  const std::int64_t total = elements_of(pieces);
  const bool scaled = request.inputs[0].shape.rank() == 1;
  const auto count = std::ssize(pieces);
  KernelChoice choice = own_kernel(request, [=, pieces = std::move(pieces)](const Operands& operands,
                                                                            const RunContext& context) {
    const op::Rates<float> rates = op::rates_at(operation.rule, *operands.input(0), context.step);
    const float factor = scaled ? operands.input(0)[1] : 1.0f;
    if (factor == 0) return;
    // Each group updates a share of the values; all groups use all of them.
    const std::int64_t begin = count * context.group / context.groups;
    const std::int64_t end = count * (context.group + 1) / context.groups;
#pragma omp parallel for schedule(static) if (total / context.groups > kParallelElements)
    for (std::int64_t i = begin; i < end; ++i) {
      const Piece& piece = pieces[i];
      const RuleArrays arrays{.values = operands.variable(1 + 2 * piece.pair), .states = operands.states(piece.pair)};
      if (scaled) {
        const float* const gradient = operands.input(2 + 2 * piece.pair);
        apply_mean(operation.rule, rates, arrays,
                   {.gradients = std::span(&gradient, 1), .weights = std::span(&factor, 1), .count = 1}, piece.range);
      } else if (context.groups == 1) {
        apply_rule(operation.rule, rates, arrays, operands.input(2 + 2 * piece.pair), piece.range);
      } else {
        const auto gradients = operands.gradients(piece.pair);
        apply_mean(operation.rule, rates, arrays,
                   {.gradients = gradients, .weights = {}, .count = static_cast<int>(gradients.size())}, piece.range);
      }
    }
  });
  take_values_as_variables(request, 1, choice);
  return choice;
}

KernelChoice make(const op::MovingAverage& operation, const KernelRequest& request, const dnnl::engine&) {
  const std::vector<Piece> pieces = pieces_of(request, 0);
  const std::int64_t total = elements_of(pieces);
  const auto count = std::ssize(pieces);
  KernelChoice choice = own_kernel(request, [=](const Operands& operands, const RunContext&) {
#pragma omp parallel for schedule(static) if (total > kParallelElements)
    for (std::int64_t p = 0; p < count; ++p) {
      const auto& [pair, range] = pieces[p];
      float* to = operands.variable(2 * pair) + range.begin;
      const float* value = operands.input(2 * pair + 1) + range.begin;
      const float decay = operation.decay;
      const auto share = static_cast<float>((1 - static_cast<double>(decay)) * operation.scales[pair]);
#pragma omp simd
      for (std::int64_t i = 0; i < range.count; ++i) to[i] = decay * to[i] + share * value[i];
    }
  });
  take_values_as_variables(request, 0, choice);
  return choice;
}

KernelChoice make(const op::Assign&, const KernelRequest& request, const dnnl::engine&) {
  const TensorDesc& variable = request.inputs[0];
  KernelChoice choice = own_kernel(request, [bytes = variable.bytes()](const Operands& operands, const RunContext&) {
    std::memmove(operands.variable(0), operands.input(1), bytes);  // memmove: a variable may be assigned to itself
  });
  choice.inputs = {variable.layout, variable.layout};
  return choice;
}

// The reference's loss scaling: only GPUs store gradients in a type that needs it.
KernelChoice make(const op::UnscaledRates& operation, const KernelRequest& request, const dnnl::engine&) {
  return reference::make(operation, request);
}

KernelChoice make(const op::UpdateLossScale& operation, const KernelRequest& request, const dnnl::engine&) {
  return reference::make(operation, request);
}

}  // namespace trireme::onednn
