// One operation on one backend, without a graph or a plan: makes the node, asks the backend for its kernel, binds
// memory of its own and runs it. For tests that compare a kernel with numbers worked out by hand.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trireme/backend/registry.hpp"
#include "trireme/base/host_tensor.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::testkit {

inline HostTensor f32(Shape shape, const std::vector<float>& values) {
  return HostTensor(std::move(shape), std::span(values));
}
inline HostTensor i32(Shape shape, const std::vector<std::int32_t>& values) {
  return HostTensor(std::move(shape), std::span(values));
}

class BoundKernel {
 public:
  // optimizer_state: [pair][state], as KernelMemory has it.
  BoundKernel(Operation operation, std::vector<HostTensor> inputs,
              std::vector<std::vector<std::vector<float>>> optimizer_state = {},
              const std::string& backend = "reference")
      : inputs_(std::move(inputs)), optimizer_state_(std::move(optimizer_state)) {
    std::vector<TensorType> types;
    for (const HostTensor& input : inputs_) types.push_back(input.type());
    node_.id = 0;
    node_.name = "node";
    node_.outputs = infer(operation, types);
    node_.op = std::move(operation);

    KernelRequest request{.node = node_, .inputs = {}, .input_open = {}, .output_wish = {}};
    for (const TensorType& type : types) {
      request.inputs.push_back({type.dtype, type.shape, Layout::plain(type.shape.rank())});
      request.input_open.push_back(false);
    }
    for (const TensorType& type : node_.outputs) {
      request.output_wish.push_back(nullptr);
      outputs_.emplace_back(type);
    }
    choice_ = make_backend(backend)->choose(request);
    bind();
  }

  const KernelChoice& choice() const { return choice_; }

  // From now on this output is written over this input.
  void share(std::size_t input, std::size_t output) {
    shared_.emplace_back(input, output);
    bind();
  }

  BoundKernel& run(const RunContext& context = {}) {
    choice_.kernel->run(context);
    return *this;
  }

  const HostTensor& output_tensor(std::size_t i = 0) const { return outputs_[i]; }
  std::vector<float> output(std::size_t i = 0) const { return {outputs_[i].f32().begin(), outputs_[i].f32().end()}; }
  // What is in an input now: updates and sharing write there.
  std::vector<float> input(std::size_t i) const { return {inputs_[i].f32().begin(), inputs_[i].f32().end()}; }
  void set_input(std::size_t i, const std::vector<float>& values) {
    std::ranges::copy(values, inputs_[i].f32().begin());
  }
  const std::vector<float>& state(std::size_t pair, std::size_t i) const { return optimizer_state_[pair][i]; }

 private:
  void bind() {
    KernelMemory memory;
    for (HostTensor& input : inputs_) memory.inputs.push_back(input.data());
    for (HostTensor& output : outputs_) memory.outputs.push_back(output.data());
    for (const auto& [input, output] : shared_) memory.outputs[output] = memory.inputs[input];
    for (auto& states : optimizer_state_) {
      std::vector<float*>& pointers = memory.optimizer_state.emplace_back();
      for (std::vector<float>& state : states) pointers.push_back(state.data());
    }
    scratch_.assign(static_cast<std::size_t>(choice_.scratch_bytes + 7) / 8, -1.0);  // kernels may not count on zeros
    memory.scratch = scratch_.data();
    choice_.kernel->bind(memory);
  }

  Node node_;
  std::vector<HostTensor> inputs_, outputs_;
  std::vector<std::vector<std::vector<float>>> optimizer_state_;
  std::vector<std::pair<std::size_t, std::size_t>> shared_;
  std::vector<double> scratch_;
  KernelChoice choice_;
};

// Runs once and gives the first output.
inline std::vector<float> run_kernel(Operation operation, std::vector<HostTensor> inputs) {
  return BoundKernel(std::move(operation), std::move(inputs)).run().output();
}

// The reference accumulates in float64, so what is left is the rounding of inputs and results to float32.
inline void expect_close(const std::vector<float>& actual, const std::vector<float>& expected,
                         float tolerance = 1e-6f) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], tolerance * std::max(1.0f, std::abs(expected[i]))) << "at element " << i;
  }
}

}  // namespace trireme::testkit
