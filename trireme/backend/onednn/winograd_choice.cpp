#include "trireme/backend/onednn/winograd_choice.hpp"

#include <omp.h>

#include "trireme/backend/function_kernel.hpp"
#include "trireme/backend/onednn/winograd.hpp"
#include "trireme/backend/onednn/winograd_gradient.hpp"

namespace trireme::onednn {
namespace {

constexpr const char* kImplementation = "own_wino_4x3:avx512";

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts) {
  constexpr op::Pair kThree{3, 3}, kOne{1, 1};
  const auto padded = [](const op::Pair& pad) { return pad[0] <= 2 && pad[1] <= 2; };
  return winograd::available() && groups == 1 && window.kernel == kThree && window.stride == kOne &&
         window.dilation == kOne && padded(window.pad_before) && padded(window.pad_after) &&
         layouts.src == blocked_activations() && layouts.dst == blocked_activations();
}

using Weights = OrderedWeights<winograd::WeightsOrder>;

}  // namespace

std::optional<KernelChoice> winograd_choice(const op::Convolution& operation, const KernelRequest& request,
                                            const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Shape& shape = request.inputs[1].shape;
  const Weights weights = first_possible(shape, layouts.weights, winograd::WeightsOrder::forward);
  const winograd::Forward convolution({.src = winograd::Images(request.inputs[0].shape),
                                       .dst = winograd::Images(request.node.outputs[0].shape),
                                       .pad_top = operation.window.pad_before[0],
                                       .pad_left = operation.window.pad_before[1],
                                       .weights = weights.order,
                                       .bias_channels = operation.bias ? shape[0] : 0,
                                       .relu = operation.activation == op::Activation::relu},
                                      omp_get_max_threads());
  const std::size_t addend = operation.bias ? 3 : 2;
  const bool bias = operation.bias, add = operation.add;
  KernelChoice choice = function_kernel(request, kImplementation, [=](const Operands& operands, const RunContext&) {
    convolution.run({.src = operands.input(0),
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
  choice.scratch_bytes = convolution.scratch_bytes();
  return choice;
}

std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                            const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Weights weights =
      first_possible(request.inputs[1].shape, layouts.weights, winograd::WeightsOrder::backward_data);
  // The same sum with the roles of the activations changed: a value of diff_src depends on the 3x3 values of diff_dst
  // that it went into.
  const winograd::Forward convolution({.src = winograd::Images(request.inputs[0].shape),
                                       .dst = winograd::Images(operation.src_shape),
                                       .pad_top = 2 - operation.window.pad_before[0],
                                       .pad_left = 2 - operation.window.pad_before[1],
                                       .weights = weights.order},
                                      omp_get_max_threads());
  KernelChoice choice = function_kernel(request, kImplementation, [=](const Operands& operands, const RunContext&) {
    convolution.run({.src = operands.input(0),
                     .weights = operands.input(1),
                     .bias = nullptr,
                     .addend = nullptr,
                     .dst = operands.output(),
                     .scratch = operands.scratch<float>()});
  });
  choice.inputs = {layouts.dst, weights.layout};
  choice.outputs = {layouts.src};
  choice.scratch_bytes = convolution.scratch_bytes();
  return choice;
}

std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardWeights& operation,
                                            const KernelRequest& request, const OwnLayouts& layouts) {
  if (!possible(operation.window, operation.groups, layouts)) return std::nullopt;
  const Weights weights = first_possible(operation.weights_shape, layouts.weights, winograd::WeightsOrder::forward);
  const bool bias = operation.bias;
  const winograd::WeightsGradient gradient({.src = winograd::Images(request.inputs[0].shape),
                                            .dst = winograd::Images(request.inputs[1].shape),
                                            .pad_top = operation.window.pad_before[0],
                                            .pad_left = operation.window.pad_before[1],
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
