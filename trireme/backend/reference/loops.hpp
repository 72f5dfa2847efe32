// The loops of the reference backend as kernels. Used by the factories of kernels.hpp.
#pragma once

#include "trireme/backend/function_kernel.hpp"

namespace trireme::reference {

template <typename Loop>
KernelChoice plain_loops(const KernelRequest& request, Loop loop) {
  return function_kernel(request, "plain loops", std::move(loop));
}

// The same for a loop that reads element i of an input before it writes element i of the output, and no other element:
// each input of the output's shape may share its memory.
template <typename Loop>
KernelChoice elementwise_loops(const KernelRequest& request, Loop loop) {
  KernelChoice choice = plain_loops(request, std::move(loop));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].shape == request.node.outputs[0].shape && choice.inputs[i] == choice.outputs[0])
      choice.in_place.emplace_back(static_cast<int>(i), 0);
  }
  return choice;
}

inline double activate(double value, op::Activation activation) {
  return activation == op::Activation::relu && value < 0 ? 0 : value;
}

}  // namespace trireme::reference
