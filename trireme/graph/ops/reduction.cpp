#include "trireme/graph/ops/reduction.hpp"

#include <numeric>

#include "trireme/graph/functions.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

std::vector<int> resolved_axes(const Reduce& op, int rank) {
  if (!op.axes.empty()) return op.axes;
  std::vector<int> all(rank);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The shape of src with extent 1 on the reduced axes.
Shape kept_shape(const std::vector<int>& axes, Shape src) {
  for (const int axis : axes) src[axis] = 1;
  return src;
}

}  // namespace

std::string_view to_string(ReduceKind kind) {
  return kind == ReduceKind::sum ? "sum" : kind == ReduceKind::mean ? "mean" : "max";
}

std::vector<TensorType> infer(const Reduce& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  const Shape& src = inputs[0].shape;
  for (std::size_t i = 0; i < op.axes.size(); ++i) {
    expect_axis(op.axes[i], src);
    if (i > 0 && op.axes[i] <= op.axes[i - 1]) {
      bad_input("axis {} comes after axis {}, expected ascending axes without repetition", op.axes[i], op.axes[i - 1]);
    }
  }
  const std::vector<int> axes = resolved_axes(op, src.rank());
  if (op.keep_dims) return {f32(kept_shape(axes, src))};
  std::vector<std::int64_t> dims;
  std::size_t next = 0;
  for (int axis = 0; axis < src.rank(); ++axis) {
    if (next < axes.size() && axes[next] == axis) {
      ++next;
    } else {
      dims.push_back(src[axis]);
    }
  }
  return {f32(Shape(std::move(dims)))};
}

std::vector<TensorType> infer(const L2Loss& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_finite(op.scale, "scale");
  return {f32({})};
}

std::vector<Tensor> gradient(const Reduce& op, const GradientArgs& args) {
  const Tensor src = args.inputs[0];
  const std::vector<int> axes = resolved_axes(op, src.shape().rank());
  const Shape kept = kept_shape(axes, src.shape());
  const auto with_kept_axes = [&](Tensor tensor) { return tensor.shape() == kept ? tensor : reshape(tensor, kept); };
  const Tensor diff_dst = with_kept_axes(args.output_gradients[0]);
  if (op.kind == ReduceKind::max) {
    // Equal maxima share the gradient.
    const Tensor mask = binary(BinaryKind::equal, src, with_kept_axes(args.outputs[0]));
    return {mask * (diff_dst / reduce_sum(mask, axes, true))};
  }
  const double count = static_cast<double>(src.shape().elements()) / static_cast<double>(kept.elements());
  const float scale = op.kind == ReduceKind::mean ? static_cast<float>(1.0 / count) : 1.0f;
  if (src.shape() == kept && scale == 1.0f) return {diff_dst};
  return {args.graph.add(Broadcast{src.shape(), scale}, {diff_dst})};
}

std::vector<Tensor> gradient(const L2Loss& op, const GradientArgs& args) {
  const Tensor diff_dst = args.output_gradients[0];
  const Tensor factor = op.scale == 1.0f ? diff_dst : args.graph.add(Broadcast{{}, op.scale}, {diff_dst});
  return {args.inputs[0] * factor};
}

}  // namespace trireme::op
