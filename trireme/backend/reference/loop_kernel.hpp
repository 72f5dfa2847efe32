// The one kernel class of the reference backend: it keeps the bound memory and runs a loop over it. The factories of
// kernels.hpp capture everything the loop needs (shapes, the operation) when the kernel is chosen.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "trireme/plan/backend.hpp"

namespace trireme::reference {

// The memory of a kernel with types; positions as listed at the operation's struct.
class Operands {
 public:
  explicit Operands(const KernelMemory& memory) : memory_(memory) {}

  template <typename Element = float>
  const Element* input(std::size_t i) const {
    return static_cast<const Element*>(memory_.inputs[i]);
  }
  template <typename Element = float>
  Element* output(std::size_t i = 0) const {
    return static_cast<Element*>(memory_.outputs[i]);
  }
  // Updates write their variable inputs.
  float* variable(std::size_t i) const { return static_cast<float*>(memory_.inputs[i]); }
  float* state(std::size_t pair, std::size_t i) const { return static_cast<float*>(memory_.optimizer_state[pair][i]); }
  double* scratch() const { return static_cast<double*>(memory_.scratch); }

 private:
  const KernelMemory& memory_;
};

template <typename Loop>
class LoopKernel final : public Kernel {
 public:
  explicit LoopKernel(Loop loop) : loop_(std::move(loop)) {}
  void bind(const KernelMemory& memory) override { memory_ = memory; }
  void run(const RunContext& context) override { loop_(Operands(memory_), context); }

 private:
  Loop loop_;
  KernelMemory memory_;
};

// A choice whose kernel calls loop(operands, context), with the plain layout for every input and output.
template <typename Loop>
KernelChoice plain_loops(const KernelRequest& request, Loop loop) {
  KernelChoice choice;
  for (const TensorDesc& input : request.inputs) choice.inputs.push_back(Layout::plain(input.shape.rank()));
  for (const TensorType& output : request.node.outputs) choice.outputs.push_back(Layout::plain(output.shape.rank()));
  choice.implementation = "plain loops";
  choice.kernel = std::make_unique<LoopKernel<Loop>>(std::move(loop));
  return choice;
}

// The same for a loop that reads element i of an input before it writes element i of the output, and no other element:
// each input of the output's shape may share its memory.
template <typename Loop>
KernelChoice elementwise_loops(const KernelRequest& request, Loop loop) {
  KernelChoice choice = plain_loops(request, std::move(loop));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    const TensorDesc& input = request.inputs[i];
    if (TensorType{input.dtype, input.shape} == request.node.outputs[0])
      choice.in_place.emplace_back(static_cast<int>(i), 0);
  }
  return choice;
}

inline double activate(double value, op::Activation activation) {
  return activation == op::Activation::relu && value < 0 ? 0 : value;
}

}  // namespace trireme::reference
