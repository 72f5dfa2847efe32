// Makes plan kernels of own convolutions. Used by winograd_forward.cpp and winograd_gradient.cpp.
#pragma once

#include <omp.h>

#include <utility>
#include <vector>

#include "trireme/backend/function_kernel.hpp"
#include "trireme/backend/onednn/blocked_convolution.hpp"
#include "trireme/backend/onednn/kernels.hpp"
#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {

// Whether CPU and layouts allow own convolutions, whatever the window.
inline bool blocked_possible(std::int64_t groups, const OwnLayouts& layouts) {
  return has_avx512() && groups == 1 && layouts.src == blocked_activations() && layouts.dst == blocked_activations();
}

// The first layout that has an order of blocks, and this order.
struct OrderedWeights {
  Layout layout;
  WeightsOrder order;
};
template <typename OrderOf>
OrderedWeights first_possible(const Shape& shape, std::vector<Layout> layouts, const OrderOf& order_of) {
  layouts.push_back(blocked_weights());
  for (Layout& layout : layouts) {
    if (const auto order = order_of(shape, layout)) return {std::move(layout), *order};
  }
  return {};  // not reached: the last layout is always possible
}

// compute(problem, threads) returns a copyable object with scratch_bytes() and run(arguments) on at most `threads`.
template <typename Compute>
KernelChoice blocked_choice(const char* implementation, const op::Convolution& operation, const KernelRequest& request,
                            const OwnLayouts& layouts, const Compute& compute) {
  const Shape& shape = request.inputs[1].shape;
  const OrderedWeights weights = first_possible(shape, layouts.weights, WeightsOrder::forward);
  const bool bias = operation.bias, add = operation.add;
  const auto convolution = compute(BlockedProblem{.src = Images(request.inputs[0].shape),
                                                  .dst = Images(request.node.outputs[0].shape),
                                                  .weights = weights.order,
                                                  .bias_channels = bias ? shape[0] : 0,
                                                  .relu = operation.activation == op::Activation::relu},
                                   omp_get_max_threads());
  const std::size_t addend = bias ? 3 : 2;
  KernelChoice choice = function_kernel(request, implementation, [=](const Operands& operands, const RunContext&) {
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

template <typename Compute>
KernelChoice blocked_choice(const char* implementation, const op::ConvolutionBackwardData& operation,
                            const KernelRequest& request, const OwnLayouts& layouts, const Compute& compute) {
  const OrderedWeights weights = first_possible(request.inputs[1].shape, layouts.weights, WeightsOrder::backward_data);
  const auto convolution = compute(
      BlockedProblem{
          .src = Images(request.inputs[0].shape), .dst = Images(operation.src_shape), .weights = weights.order},
      omp_get_max_threads());
  KernelChoice choice = function_kernel(request, implementation, [=](const Operands& operands, const RunContext&) {
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

template <typename Compute>
KernelChoice blocked_choice(const char* implementation, const op::ConvolutionBackwardWeights& operation,
                            const KernelRequest& request, const OwnLayouts& layouts, const Compute& compute) {
  const OrderedWeights weights = first_possible(operation.weights_shape, layouts.weights, WeightsOrder::forward);
  const bool bias = operation.bias;
  const auto gradient = compute(BlockedProblem{.src = Images(request.inputs[0].shape),
                                               .dst = Images(request.inputs[1].shape),
                                               .weights = weights.order,
                                               .bias_channels = bias ? operation.weights_shape[0] : 0},
                                omp_get_max_threads());
  KernelChoice choice = function_kernel(request, implementation, [=](const Operands& operands, const RunContext&) {
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
