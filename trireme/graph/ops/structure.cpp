#include "trireme/graph/ops/structure.hpp"

#include <numeric>

#include "trireme/graph/functions.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

void expect_one_per_axis(const std::vector<std::int64_t>& values, const Shape& shape, const char* name) {
  if (static_cast<int>(values.size()) != shape.rank()) {
    bad_input("{} has {} entries, expected {}: one per axis of src {}", name, values.size(), shape.rank(),
              to_string(shape));
  }
}

}  // namespace

std::vector<TensorType> infer(const Concat& op, Types inputs) {
  if (inputs.empty()) bad_input("expected one or more inputs, got none");
  expect_inputs(inputs, std::vector<InputSpec>(inputs.size(), "every input"));
  Shape result = inputs[0].shape;
  expect_axis(op.axis, result);
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const Shape& shape = inputs[i].shape;
    Shape expected = inputs[0].shape;
    if (shape.rank() == expected.rank()) expected[op.axis] = shape[op.axis];
    if (shape != expected) {
      bad_input("input {} has shape {}, input 0 has {}; expected the same extents except on axis {}", i,
                to_string(shape), to_string(inputs[0].shape), op.axis);
    }
    result[op.axis] += shape[op.axis];
  }
  return {f32(std::move(result))};
}

std::vector<TensorType> infer(const Split& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  const Shape& src = inputs[0].shape;
  expect_axis(op.axis, src);
  std::vector<TensorType> outputs;
  for (const std::int64_t size : op.sizes) {
    if (size < 1) bad_input("a size is {}, expected 1 or more for each part", size);
    outputs.push_back(inputs[0]);
    outputs.back().shape[op.axis] = size;
  }
  const std::int64_t total = std::accumulate(op.sizes.begin(), op.sizes.end(), std::int64_t{0});
  if (total != src[op.axis]) {
    bad_input("the {} sizes add up to {}, expected {}: the extent of axis {} of src {}", op.sizes.size(), total,
              src[op.axis], op.axis, to_string(src));
  }
  return outputs;
}

std::vector<TensorType> infer(const Pad& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  Shape result = inputs[0].shape;
  expect_one_per_axis(op.before, result, "before");
  expect_one_per_axis(op.after, result, "after");
  expect_finite(op.value, "the padding's value");
  for (int axis = 0; axis < result.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (op.before[a] < 0 || op.after[a] < 0) {
      bad_input("padding on axis {} is {} before and {} after, expected 0 or more (to cut, use slice)", axis,
                op.before[a], op.after[a]);
    }
    result[axis] += op.before[a] + op.after[a];
  }
  return {f32(std::move(result))};
}

std::vector<TensorType> infer(const Slice& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  const Shape& src = inputs[0].shape;
  expect_one_per_axis(op.begin, src, "begin");
  expect_one_per_axis(op.size, src, "size");
  for (int axis = 0; axis < src.rank(); ++axis) {
    const auto a = static_cast<std::size_t>(axis);
    if (op.begin[a] < 0 || op.size[a] < 1 || op.begin[a] > src[axis] - op.size[a]) {
      bad_input("the box begins at {} with size {} on axis {}, expected a part of 0 to {} with size 1 or more",
                op.begin[a], op.size[a], axis, src[axis]);
    }
  }
  return {f32(Shape(op.size))};
}

std::vector<TensorType> infer(const Reshape& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_extents(op.shape, "the new shape");
  if (op.shape.elements() != inputs[0].shape.elements()) {
    bad_input("src has {} elements ({}), but the new shape {} has {}; expected the same number",
              inputs[0].shape.elements(), to_string(inputs[0].shape), to_string(op.shape), op.shape.elements());
  }
  return {f32(op.shape)};
}

// Only the box is read.
Cost cost(const Slice&, Types, Types outputs) { return {0, 2.0 * traffic({}, outputs)}; }

std::vector<Tensor> gradient(const Concat& op, const GradientArgs& args) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& input : args.inputs) sizes.push_back(input.shape()[op.axis]);
  return split(args.output_gradients[0], std::move(sizes), op.axis);
}

std::vector<Tensor> gradient(const Split& op, const GradientArgs& args) {
  std::vector<Tensor> parts;
  for (std::size_t i = 0; i < args.outputs.size(); ++i) {
    const Tensor part = args.output_gradients[i];
    parts.push_back(
        part ? part
             : args.graph.add(Broadcast{args.outputs[i].shape()}, {constant(args.graph, 0.0f, "zero")}, "zeros"));
  }
  return {concat(std::move(parts), op.axis)};
}

std::vector<Tensor> gradient(const Pad& op, const GradientArgs& args) {
  return {slice(args.output_gradients[0], op.before, args.inputs[0].shape().dims())};
}

std::vector<Tensor> gradient(const Slice& op, const GradientArgs& args) {
  std::vector<std::int64_t> after = args.inputs[0].shape().dims();
  for (std::size_t a = 0; a < after.size(); ++a) after[a] -= op.begin[a] + op.size[a];
  return {pad(args.output_gradients[0], op.begin, std::move(after))};
}

std::vector<Tensor> gradient(const Reshape&, const GradientArgs& args) {
  return {reshape(args.output_gradients[0], args.inputs[0].shape())};
}

}  // namespace trireme::op
