#include "trireme/backend/onednn/pointwise_choice.hpp"

#include <omp.h>

#include "trireme/backend/function_kernel.hpp"
#include "trireme/backend/onednn/pointwise.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {
namespace {

constexpr const char* kImplementation = "own_1x1:avx512";

using pointwise::WeightsOrder;
using Weights = OrderedWeights<WeightsOrder>;

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts) {
  constexpr op::Pair kOne{1, 1}, kNone{0, 0};
  return has_avx512() && groups == 1 && window.kernel == kOne && window.pad_before == kNone &&
         window.pad_after == kNone && layouts.src == blocked_activations() && layouts.dst == blocked_activations();
}

}  // namespace

std::optional<KernelChoice> pointwise_choice(const op::Convolution& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Shape& shape = request.inputs[1].shape;
  const Weights weights = first_possible(shape, layouts.weights, WeightsOrder::forward);
  const pointwise::Product product({.src = pointwise::Images(request.inputs[0].shape),
                                    .dst = pointwise::Images(request.node.outputs[0].shape),
                                    .src_step = operation.window.stride,
                                    .weights = weights.order,
                                    .bias_channels = operation.bias ? shape[0] : 0,
                                    .relu = operation.activation == op::Activation::relu},
                                   omp_get_max_threads());
  const std::size_t addend = operation.bias ? 3 : 2;
  const bool bias = operation.bias, add = operation.add;
  KernelChoice choice = function_kernel(request, kImplementation, [=](const Operands& operands, const RunContext&) {
    product.run({.src = operands.input(0),
                 .weights = operands.input(1),
                 .bias = bias ? operands.input(2) : nullptr,
                 .addend = add ? operands.input(addend) : nullptr,
                 .dst = operands.output(),
                 .scratch = operands.scratch<float>()});
  });
  choice.inputs[0] = layouts.src;
  choice.inputs[1] = weights.layout;
  choice.outputs[0] = layouts.dst;
  if (add) {
    choice.inputs[addend] = layouts.dst;
    choice.in_place = {{static_cast<int>(addend), 0}};
  }
  choice.scratch_bytes = product.scratch_bytes();
  return choice;
}

std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Weights weights = first_possible(request.inputs[1].shape, layouts.weights, WeightsOrder::backward_data);
  const pointwise::Product product({.src = pointwise::Images(request.inputs[0].shape),
                                    .dst = pointwise::Images(operation.src_shape),
                                    .dst_step = operation.window.stride,
                                    .weights = weights.order},
                                   omp_get_max_threads());
  KernelChoice choice = function_kernel(request, kImplementation, [=](const Operands& operands, const RunContext&) {
    product.run({.src = operands.input(0),
                 .weights = operands.input(1),
                 .bias = nullptr,
                 .addend = nullptr,
                 .dst = operands.output(),
                 .scratch = operands.scratch<float>()});
  });
  choice.inputs = {layouts.dst, weights.layout};
  choice.outputs = {layouts.src};
  choice.scratch_bytes = product.scratch_bytes();
  return choice;
}

std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardWeights& operation,
                                             const KernelRequest& request, const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Weights weights = first_possible(operation.weights_shape, layouts.weights, WeightsOrder::forward);
  const bool bias = operation.bias;
  const pointwise::WeightsGradient gradient({.src = pointwise::Images(request.inputs[0].shape),
                                             .dst = pointwise::Images(request.inputs[1].shape),
                                             .step = operation.window.stride,
                                             .weights = weights.order,
                                             .bias_channels = bias ? operation.weights_shape[0] : 0},
                                            omp_get_max_threads());
  KernelChoice choice = function_kernel(request, kImplementation, [=](const Operands& operands, const RunContext&) {
    gradient.run({.src = operands.input(0),
                  .diff_dst = operands.input(1),
                  .diff_weights = operands.output(0),
                  .diff_bias = bias ? operands.output(1) : nullptr,
                  .scratch = operands.scratch<float>()});
  });
  choice.inputs = {layouts.src, layouts.dst};
  choice.outputs[0] = weights.layout;
  choice.scratch_bytes = gradient.scratch_bytes();
  return choice;
}

}  // namespace trireme::onednn
