// Shared by the operation families: the interface that each operation struct implements by overloads, and the geometry
// of sliding windows. Each family file has the structs with shape inference, cost and gradient rule. Structs list
// inputs and outputs in order; [x] is present only if the named member says so.
//
//   std::vector<TensorType> infer(const Op&, Types inputs);       throws Error(bad_input) saying what was expected
//   Cost cost(const Op&, Types inputs, Types outputs);            if absent: kFlops, if declared, per element of the
//                                                                 first input; bytes of all inputs and outputs
//   std::vector<Tensor> gradient(const Op&, const GradientArgs&); one entry per input, empty Tensor if none flows;
//                                                                 absent if an operation has no gradient
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/base/shape.hpp"

namespace trireme {

class Graph;
using NodeId = std::int32_t;

// An edge: one output of a node. Cheap to copy; may be empty.
struct Tensor {
  Graph* graph = nullptr;
  NodeId node = -1;
  int output = 0;

  explicit operator bool() const { return node >= 0; }
  bool operator==(const Tensor&) const = default;
  const TensorType& type() const;
  const Shape& shape() const { return type().shape; }
};

using Types = std::span<const TensorType>;

// Work of one run. Multiply and add count as two flops; bytes are what must be read and written once.
struct Cost {
  double flops = 0;
  double bytes = 0;
};

// Arguments of a gradient rule: the node's inputs and outputs, the gradient of each output (empty if none arrives), and
// which input gradients are needed, so that a rule adds no unused node.
struct GradientArgs {
  Graph& graph;
  std::span<const Tensor> inputs;
  std::span<const Tensor> outputs;
  std::span<const Tensor> output_gradients;
  const std::vector<bool>& needed;
};

namespace op {

using Pair = std::array<std::int64_t, 2>;  // height, width

struct Window {
  Pair kernel{1, 1};
  Pair stride{1, 1};
  Pair dilation{1, 1};
  Pair pad_before{0, 0};
  Pair pad_after{0, 0};
  bool operator==(const Window&) const = default;
};

// Output extent of one axis; 0 or less if padding and kernel leave nothing.
std::int64_t window_output(const Window& window, int axis, std::int64_t input);

// Sets TensorFlow's SAME padding for this input: out = ceil(in / stride), the odd cell comes after.
Window same_padding(Window window, std::int64_t height, std::int64_t width);

// Output extents of both axes; Error(bad_input) if a number is out of range or an axis would be empty.
Pair window_outputs(const Window& window, Pair input);

std::string to_string(const Window& window);  // "3x3/2 pad 0,1 x 0,1"; omits trivial stride, dilation and padding

enum class Activation : std::uint8_t { none, relu };

}  // namespace op
}  // namespace trireme
