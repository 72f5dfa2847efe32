#include "trireme/graph/ops/elementwise.hpp"

#include <algorithm>
#include <array>

#include "trireme/graph/functions.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

void check_unary(UnaryKind kind, float alpha, float beta) {
  expect_finite(alpha, "alpha");
  expect_finite(beta, "beta");
  if (kind == UnaryKind::clip && alpha > beta) bad_input("clip from {} to {}, expected low <= high", alpha, beta);
  if (kind == UnaryKind::leaky_relu || kind == UnaryKind::elu) expect_not_negative(alpha, "alpha");
}

// As in numpy: aligned at the last axis; an extent of 1 is repeated.
Shape broadcast_shape(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result(std::vector<std::int64_t>(static_cast<std::size_t>(rank), 1));
  for (int axis = 0; axis < rank; ++axis) {
    const int axis_a = axis - (rank - a.rank()), axis_b = axis - (rank - b.rank());
    const std::int64_t extent_a = axis_a < 0 ? 1 : a[axis_a], extent_b = axis_b < 0 ? 1 : b[axis_b];
    if (extent_a != extent_b && extent_a != 1 && extent_b != 1) {
      bad_input(
          "shapes {} and {} do not broadcast: extents {} and {} on axis {} of the result; they must be equal, or one "
          "of them must be 1",
          to_string(a), to_string(b), extent_a, extent_b, axis);
    }
    result[axis] = extent_a == 1 ? extent_b : extent_a;
  }
  return result;
}

// Sums the gradient of a broadcast value back to the value's shape.
Tensor reduce_to(Tensor gradient, const Shape& shape) {
  const Shape& wide = gradient.shape();
  if (wide == shape) return gradient;
  const int leading = wide.rank() - shape.rank();
  std::vector<int> axes;
  for (int axis = 0; axis < wide.rank(); ++axis) {
    if (axis < leading || (shape[axis - leading] == 1 && wide[axis] != 1)) axes.push_back(axis);
  }
  const Tensor sum = reduce_sum(gradient, std::move(axes));
  return sum.shape() == shape ? sum : reshape(sum, shape);
}

std::vector<Tensor> extremum_gradient(const Tensor& mask_of_a, const GradientArgs& args) {
  const Tensor diff_dst = args.output_gradients[0];
  const Tensor to_a = diff_dst * mask_of_a;
  std::vector<Tensor> result(2);
  if (args.needed[0]) result[0] = to_a;
  if (args.needed[1]) result[1] = diff_dst - to_a;
  return result;
}

std::vector<Tensor> wide_gradient(BinaryKind kind, const GradientArgs& args) {
  const Tensor a = args.inputs[0], b = args.inputs[1], dst = args.outputs[0], diff_dst = args.output_gradients[0];
  const auto& needed = args.needed;
  std::vector<Tensor> result(2);
  switch (kind) {
    case BinaryKind::add:
      return {diff_dst, diff_dst};
    case BinaryKind::subtract:
      return {diff_dst, needed[1] ? unary(UnaryKind::negate, diff_dst) : Tensor{}};
    case BinaryKind::multiply:
      if (needed[0]) result[0] = diff_dst * b;
      if (needed[1]) result[1] = diff_dst * a;
      return result;
    case BinaryKind::divide:
      result[0] = diff_dst / b;
      if (needed[1]) result[1] = unary(UnaryKind::negate, result[0] * dst);
      return result;
    // If both are equal, a gets the gradient.
    case BinaryKind::maximum:
      return extremum_gradient(binary(BinaryKind::greater_equal, a, b), args);
    case BinaryKind::minimum:
      return extremum_gradient(binary(BinaryKind::greater_equal, b, a), args);
    case BinaryKind::equal:
    case BinaryKind::greater_equal:
      break;
  }
  bad_input("a comparison ({}) has no gradient", to_string(kind));
}

}  // namespace

std::string_view to_string(UnaryKind kind) {
  constexpr std::array kNames{"relu", "leaky_relu", "elu",  "sigmoid", "tanh", "softplus", "swish", "gelu",
                              "abs",  "square",     "sqrt", "exp",     "log",  "negate",   "clip",  "affine"};
  static_assert(kNames.size() == static_cast<std::size_t>(UnaryKind::affine) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(BinaryKind kind) {
  constexpr std::array kNames{"add", "subtract", "multiply", "divide", "maximum", "minimum", "equal", "greater_equal"};
  static_assert(kNames.size() == static_cast<std::size_t>(BinaryKind::greater_equal) + 1);
  return kNames[static_cast<std::size_t>(kind)];
}

bool backward_uses_dst(UnaryKind kind) {
  using enum UnaryKind;
  constexpr std::array kKinds{relu, leaky_relu, elu, sigmoid, tanh, sqrt, exp, clip};
  return std::ranges::find(kKinds, kind) != kKinds.end();
}

std::vector<TensorType> infer(const Unary& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  check_unary(op.kind, op.alpha, op.beta);
  return {inputs[0]};
}

std::vector<TensorType> infer(const UnaryBackward& op, Types inputs) {
  expect_inputs(inputs, {"diff_dst", "data"});
  check_unary(op.kind, op.alpha, op.beta);
  expect_shape(inputs[1], "data", inputs[0].shape, "the shape of diff_dst");
  return {inputs[0]};
}

std::vector<TensorType> infer(const Binary&, Types inputs) {
  expect_inputs(inputs, {"a", "b"});
  return {f32(broadcast_shape(inputs[0].shape, inputs[1].shape))};
}

std::vector<TensorType> infer(const Dropout& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_rank_at_least(inputs[0], "src", 1, "the batch first");
  expect_in(op.rate, 0, 1, "the dropout rate");
  return {inputs[0]};
}

std::vector<TensorType> infer(const Broadcast& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_finite(op.scale, "scale");
  expect_extents(op.shape, "the shape to broadcast to");
  if (broadcast_shape(inputs[0].shape, op.shape) != op.shape) {
    bad_input("src has shape {}, which does not broadcast to {}; each extent must be equal or 1",
              to_string(inputs[0].shape), to_string(op.shape));
  }
  return {f32(op.shape)};
}

Cost cost(const Binary& op, Types inputs, Types outputs) {
  return {(op.activation == Activation::none ? 1.0 : 2.0) * elements(outputs[0]), traffic(inputs, outputs)};
}

Cost cost(const Broadcast& op, Types inputs, Types outputs) {
  return {op.scale == 1.0f ? 0.0 : elements(outputs[0]), traffic(inputs, outputs)};
}

std::vector<Tensor> gradient(const Unary& op, const GradientArgs& args) {
  const Tensor diff_dst = args.output_gradients[0];
  if (op.kind == UnaryKind::negate) return {unary(UnaryKind::negate, diff_dst)};
  if (op.kind == UnaryKind::affine) return {op.alpha == 1.0f ? diff_dst : diff_dst * op.alpha};
  const Tensor data = backward_uses_dst(op.kind) ? args.outputs[0] : args.inputs[0];
  return {args.graph.add(UnaryBackward{op.kind, op.alpha, op.beta}, {diff_dst, data})};
}

std::vector<Tensor> gradient(const Binary& op, const GradientArgs& args) {
  refuse_fused(op.activation != Activation::none);
  std::vector<Tensor> result = wide_gradient(op.kind, args);
  for (std::size_t i = 0; i < 2; ++i) {
    if (args.needed[i]) result[i] = reduce_to(result[i], args.inputs[i].shape());
  }
  return result;
}

std::vector<Tensor> gradient(const Dropout& op, const GradientArgs& args) {
  return {args.graph.add(op, {args.output_gradients[0]})};
}

std::vector<Tensor> gradient(const Broadcast& op, const GradientArgs& args) {
  const Shape& src = args.inputs[0].shape();
  const Tensor sum = reduce_to(args.output_gradients[0], src);
  // Scaled after the sum, which has fewer elements.
  return {op.scale == 1.0f ? sum : args.graph.add(Broadcast{src, op.scale}, {sum})};
}

}  // namespace trireme::op
