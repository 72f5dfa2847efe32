#include <algorithm>
#include <cmath>
#include <cstring>

#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/own_kernel.hpp"
#include "trireme/base/simd.hpp"

namespace trireme::onednn {
namespace {

// A piece of one variable: the unit of work, so that many small variables cost one parallel region together.
struct Piece {
  std::size_t pair;
  std::int64_t begin, count;
};
constexpr std::int64_t kPiece = 16384;

// The mean of one piece's gradient over all groups, in memory of the thread's own while the piece is in the cache.
struct MeanGradient {
  alignas(64) float values[kPiece];
};
TRIREME_SIMD void add_gradient(const float* gradient, std::int64_t count, float share, float* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] += share * gradient[i];
}
const float* mean_gradient(const Operands& operands, const Piece& piece, int groups, MeanGradient& mean) {
  std::fill_n(mean.values, piece.count, 0.0f);
  for (int group = 0; group < groups; ++group) {
    add_gradient(operands.gradient(piece.pair, group) + piece.begin, piece.count, 1.0f / static_cast<float>(groups),
                 mean.values);
  }
  return mean.values;
}

struct Values {
  float* value;
  const float* gradient;
  float* first;  // state
  float* second;
  std::int64_t count;
};

// What of a rule changes from step to step, worked out once per run.
struct Rates {
  float learning_rate;
  float adam_rate;  // with the corrections of both moments

  Rates(const op::OptimizerRule& rule, float rate, std::uint64_t step) : learning_rate(rate), adam_rate(rate) {
    if (rule.kind != op::OptimizerKind::adam) return;
    const auto t = static_cast<double>(step + 1);
    adam_rate = static_cast<float>(rate * std::sqrt(1 - std::pow(static_cast<double>(rule.beta2), t)) /
                                   (1 - std::pow(static_cast<double>(rule.beta1), t)));
  }
};

// The formulas are at op::OptimizerRule. Padding has zero gradients and values, and stays zero under every rule.
TRIREME_SIMD void update_piece(const op::OptimizerRule& rule, const Rates& rates, const Values& v) {
  float* __restrict value = v.value;
  const float* __restrict gradient = v.gradient;
  float* __restrict first = v.first;
  float* __restrict second = v.second;
  const float rate = rates.learning_rate, decay = rule.weight_decay, momentum = rule.momentum, epsilon = rule.epsilon;
  switch (rule.kind) {
    case op::OptimizerKind::sgd:
      for (std::int64_t i = 0; i < v.count; ++i) value[i] -= rate * (gradient[i] + decay * value[i]);
      break;
    case op::OptimizerKind::momentum:
      for (std::int64_t i = 0; i < v.count; ++i) {
        first[i] = momentum * first[i] + gradient[i] + decay * value[i];
        value[i] -= rate * first[i];
      }
      break;
    case op::OptimizerKind::nesterov:
      for (std::int64_t i = 0; i < v.count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = momentum * first[i] + g;
        value[i] -= rate * (g + momentum * first[i]);
      }
      break;
    case op::OptimizerKind::rmsprop:
      for (std::int64_t i = 0; i < v.count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = rule.decay * first[i] + (1 - rule.decay) * g * g;
        second[i] = momentum * second[i] + rate * g / std::sqrt(first[i] + epsilon);
        value[i] -= second[i];
      }
      break;
    case op::OptimizerKind::adam:
      for (std::int64_t i = 0; i < v.count; ++i) {
        const float g = gradient[i] + decay * value[i];
        first[i] = rule.beta1 * first[i] + (1 - rule.beta1) * g;
        second[i] = rule.beta2 * second[i] + (1 - rule.beta2) * g * g;
        value[i] -= rates.adam_rate * first[i] / (std::sqrt(second[i]) + epsilon);
      }
      break;
  }
}

}  // namespace

KernelChoice make(const op::ApplyGradients& operation, const KernelRequest& request, const dnnl::engine&) {
  std::vector<Piece> pieces;
  std::int64_t total = 0;
  for (std::size_t pair = 0; 1 + 2 * pair < request.inputs.size(); ++pair) {
    const TensorDesc& variable = request.inputs[1 + 2 * pair];
    const std::int64_t elements = variable.layout.elements(variable.shape);
    total += elements;
    for (std::int64_t begin = 0; begin < elements; begin += kPiece) {
      pieces.push_back({pair, begin, std::min(kPiece, elements - begin)});
    }
  }
  const int states = op::state_count(operation.rule.kind);
  const auto count = static_cast<std::int64_t>(pieces.size());
  KernelChoice choice =
      own_kernel(request, [=, pieces = std::move(pieces)](const Operands& operands, const RunContext& context) {
        const Rates rates(operation.rule, *operands.input(0), context.step);
        // Each group updates a share of the values, which all of them use.
        const std::int64_t begin = count * context.group / context.groups;
        const std::int64_t end = count * (context.group + 1) / context.groups;
#pragma omp parallel for schedule(static) if (total / context.groups > kParallelElements)
        for (std::int64_t i = begin; i < end; ++i) {
          const Piece& piece = pieces[static_cast<std::size_t>(i)];
          MeanGradient mean;
          update_piece(operation.rule, rates,
                       {.value = operands.variable(1 + 2 * piece.pair) + piece.begin,
                        .gradient = context.groups == 1 ? operands.input(2 + 2 * piece.pair) + piece.begin
                                                        : mean_gradient(operands, piece, context.groups, mean),
                        .first = states > 0 ? operands.state(piece.pair, 0) + piece.begin : nullptr,
                        .second = states > 1 ? operands.state(piece.pair, 1) + piece.begin : nullptr,
                        .count = piece.count});
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
