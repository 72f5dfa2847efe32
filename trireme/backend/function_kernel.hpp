// The kernel class for what backends compute with their own loops: keeps the bound memory and calls a function on it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "trireme/plan/backend.hpp"

namespace trireme {

// Typed access to a kernel's memory; positions as listed at the operation's struct.
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
  float* variable(std::size_t i) const { return static_cast<float*>(memory_.inputs[i]); }
  std::span<float* const> states(std::size_t pair) const {
    if (memory_.optimizer_state.empty()) return {};  // the rule keeps none
    return memory_.optimizer_state[pair];
  }
  std::span<const float* const> gradients(std::size_t pair) const { return memory_.gradients[pair]; }  // by group
  template <typename Element>
  Element* shared(int group) const {
    return static_cast<Element*>(memory_.shared[group]);
  }
  std::span<void* const> shared_blocks() const { return memory_.shared; }
  std::int64_t first_sample() const { return memory_.first_sample; }
  template <typename Element>
  Element* scratch(std::int64_t bytes = 0) const {
    return reinterpret_cast<Element*>(static_cast<std::byte*>(memory_.scratch) + bytes);
  }

 private:
  const KernelMemory& memory_;
};

template <typename Function>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(Function function) : function_(std::move(function)) {}
  std::unique_ptr<Kernel> another() const override { return std::make_unique<FunctionKernel>(function_); }
  void bind(const KernelMemory& memory) override { memory_ = memory; }
  void run(const RunContext& context) override { function_(Operands(memory_), context); }

 private:
  Function function_;
  KernelMemory memory_;
};

// A choice whose kernel calls function(operands, context). All formats are plain, of the graph's type, until changed.
template <typename Function>
KernelChoice function_kernel(const KernelRequest& request, std::string implementation, Function function) {
  KernelChoice choice;
  const auto plain = [](const Shape& shape, DataType stored) {
    return Format(Layout::plain(shape.rank()), stored == DataType::i32 ? DataType::i32 : DataType::f32);
  };
  for (const TensorDesc& input : request.inputs) choice.inputs.push_back(plain(input.shape, input.dtype));
  for (const TensorType& output : request.node.outputs) choice.outputs.push_back(plain(output.shape, output.dtype));
  choice.implementation = std::move(implementation);
  choice.kernel = std::make_unique<FunctionKernel<Function>>(std::move(function));
  return choice;
}

}  // namespace trireme
