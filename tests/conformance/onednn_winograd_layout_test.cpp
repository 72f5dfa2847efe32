// The own Winograd convolution takes weights in the layout that they have, and gives their gradient in the one that is
// wished for, where that is one of two: the same numbers must come of both.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "operation_check.hpp"

namespace trireme::testkit {
namespace {

Layout blocked_weights(int rows, int columns) {
  return {Layout::plain(4).order, {{.axis = rows, .size = 16}, {.axis = columns, .size = 16}}};
}

class OneDnnWinogradLayout : public ::testing::Test {
 protected:
  void SetUp() override {
    if (tested_backend() == nullptr) GTEST_SKIP() << "this build has no oneDNN";
  }

  static AlignedMemory packed(const HostTensor& values, const Layout& layout) {
    const TensorDesc desc{values.type().dtype, values.shape(), layout};
    AlignedMemory memory(desc.bytes());
    pack(desc, values.data(), memory.at(0));
    return memory;
  }

  // The first output with activations blocked and weights, or their gradient, in this layout; nothing where there is no
  // own Winograd on this CPU.
  std::optional<HostTensor> result(const OperationCase& operation, const Layout& weights) const {
    const Node& node = operation.node();
    const auto layout_of = [&](const Shape& shape) { return shape == weights_.shape() ? weights : blocked(16); };
    KernelRequest request{.node = node, .inputs = {}, .input_open = {}, .output_wish = {&weights}};
    for (const HostTensor& value : operation.values()) {
      request.inputs.push_back({DataType::f32, value.shape(), layout_of(value.shape())});
      request.input_open.push_back(false);
    }
    const Shape& shape = node.outputs[0].shape;
    const Layout layout = layout_of(shape);
    if (layout != weights) request.output_wish = {nullptr};
    const KernelChoice choice = make_backend("onednn", {.force = "own_winograd"})->choose(request);
    if (choice.implementation.rfind("own_wino", 0) != 0) return std::nullopt;

    std::vector<AlignedMemory> memories;
    KernelMemory bound;
    for (std::size_t i = 0; i < request.inputs.size(); ++i) {
      EXPECT_EQ(choice.inputs[i], request.inputs[i].layout);
      memories.push_back(packed(operation.values()[i], choice.inputs[i].layout));
      bound.inputs.push_back(memories.back().at(0));
    }
    EXPECT_EQ(choice.outputs[0], layout);
    const TensorDesc desc{DataType::f32, shape, layout};
    const AlignedMemory output(desc.bytes()), scratch(choice.scratch_bytes);
    bound.outputs = {output.at(0)};
    bound.scratch = scratch.at(0);
    choice.kernel->bind(bound);
    choice.kernel->run({});
    HostTensor values(TensorType{DataType::f32, shape});
    unpack(desc, output.at(0), values.data());
    return values;
  }

  void expect_equal(const OperationCase& operation) const {
    const auto a = result(operation, blocked_weights(1, 0)), b = result(operation, blocked_weights(0, 1));
    if (!a || !b) GTEST_SKIP() << "this CPU has no AVX-512";
    EXPECT_EQ(difference(*a, *b, {.terms = 0, .magnitude = 0}), "");
  }

  const op::Window window_{.kernel = {3, 3}, .pad_before = {1, 1}, .pad_after = {1, 1}};
  const HostTensor src_ = random_tensor({2, 40, 9, 7}, 1), weights_ = random_tensor({24, 40, 3, 3}, 2),
                   dst_ = random_tensor({2, 24, 9, 7}, 3);
};

TEST_F(OneDnnWinogradLayout, Forward) { expect_equal({op::Convolution{.window = window_}, {src_, weights_}, {1}}); }

TEST_F(OneDnnWinogradLayout, BackwardData) {
  expect_equal({op::ConvolutionBackwardData{.window = window_, .src_shape = src_.shape()}, {dst_, weights_}, {1}});
}

TEST_F(OneDnnWinogradLayout, BackwardWeights) {
  expect_equal({op::ConvolutionBackwardWeights{.window = window_, .weights_shape = weights_.shape()}, {src_, dst_}});
}

}  // namespace
}  // namespace trireme::testkit
