#include "trireme/graph/ops/linear.hpp"

#include "trireme/graph/functions.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

Shape fully_connected_output(const TensorType& src, const TensorType& weights) {
  expect_rank_at_least(src, "src", 2, "batch x features");
  Shape expected = src.shape;
  if (weights.shape.rank() > 0) expected[0] = weights.shape[0];
  expect_shape(weights, "weights", expected, "outputs x the extents of src after the batch");
  return {src.shape[0], weights.shape[0]};
}

double fully_connected_flops(std::int64_t batch, const Shape& weights) {
  return 2.0 * static_cast<double>(batch) * static_cast<double>(weights.elements());
}

}  // namespace

std::vector<TensorType> infer(const FullyConnected& op, Types inputs) {
  std::vector<InputSpec> specs{"src", "weights"};
  if (op.bias) specs.emplace_back("bias");
  expect_inputs(inputs, specs);
  const Shape dst = fully_connected_output(inputs[0], inputs[1]);
  if (op.bias) expect_shape(inputs[2], "bias", {dst[1]}, "one per output");
  return {f32(dst)};
}

std::vector<TensorType> infer(const FullyConnectedBackwardData& op, Types inputs) {
  expect_inputs(inputs, {"diff_dst", "weights"});
  const Shape dst = fully_connected_output(f32(op.src_shape), inputs[1]);
  expect_shape(inputs[0], "diff_dst", dst, "the shape of the layer's output");
  return {f32(op.src_shape)};
}

std::vector<TensorType> infer(const FullyConnectedBackwardWeights& op, Types inputs) {
  expect_inputs(inputs, {"src", "diff_dst"});
  expect_rank_at_least(inputs[0], "src", 2, "batch x features");
  expect_rank(inputs[1], "diff_dst", 2, "batch x outputs");
  const Shape& dst = inputs[1].shape;
  expect_shape(inputs[1], "diff_dst", {inputs[0].shape[0], dst[1]}, "the batch of src x outputs");
  Shape weights = inputs[0].shape;
  weights[0] = dst[1];
  std::vector<TensorType> outputs{f32(std::move(weights))};
  if (op.bias) outputs.push_back(f32({dst[1]}));
  return outputs;
}

std::vector<TensorType> infer(const MatMul& op, Types inputs) {
  expect_inputs(inputs, {"a", "b"});
  expect_rank(inputs[0], "a", 2, "a matrix");
  expect_rank(inputs[1], "b", 2, "a matrix");
  const Shape& a = inputs[0].shape;
  const Shape& b = inputs[1].shape;
  const std::int64_t m = a[op.transpose_a ? 1 : 0], a_inner = a[op.transpose_a ? 0 : 1];
  const std::int64_t n = b[op.transpose_b ? 0 : 1], b_inner = b[op.transpose_b ? 1 : 0];
  if (a_inner != b_inner) {
    bad_input("a is {}x{} and b is {}x{} after transposing; expected the inner extents {} and {} to be equal", m,
              a_inner, b_inner, n, a_inner, b_inner);
  }
  return {f32({m, n})};
}

std::vector<TensorType> infer(const Bias&, Types inputs) {
  expect_inputs(inputs, {"src", "bias"});
  expect_rank_at_least(inputs[0], "src", 2, "batch x channels");
  expect_shape(inputs[1], "bias", {inputs[0].shape[1]}, "one per channel");
  return {inputs[0]};
}

std::vector<TensorType> infer(const BiasBackward&, Types inputs) {
  expect_inputs(inputs, {"diff_dst"});
  expect_rank_at_least(inputs[0], "diff_dst", 2, "batch x channels");
  return {f32({inputs[0].shape[1]})};
}

Cost cost(const FullyConnected&, Types inputs, Types outputs) {
  return {fully_connected_flops(inputs[0].shape[0], inputs[1].shape), traffic(inputs, outputs)};
}

Cost cost(const FullyConnectedBackwardData&, Types inputs, Types outputs) {
  return {fully_connected_flops(inputs[0].shape[0], inputs[1].shape), traffic(inputs, outputs)};
}

Cost cost(const FullyConnectedBackwardWeights&, Types inputs, Types outputs) {
  return {fully_connected_flops(inputs[0].shape[0], outputs[0].shape), traffic(inputs, outputs)};
}

Cost cost(const MatMul& op, Types inputs, Types outputs) {
  const std::int64_t inner = inputs[0].shape[op.transpose_a ? 0 : 1];
  return {2.0 * elements(outputs[0]) * static_cast<double>(inner), traffic(inputs, outputs)};
}

std::vector<Tensor> gradient(const FullyConnected& op, const GradientArgs& args) {
  refuse_fused(op.activation != Activation::none);
  const Tensor src = args.inputs[0], weights = args.inputs[1], diff_dst = args.output_gradients[0];
  const bool bias = op.bias && args.needed[2];
  std::vector<Tensor> result(args.inputs.size());
  if (args.needed[1]) {
    result[1] = args.graph.add(FullyConnectedBackwardWeights{bias}, {src, diff_dst});
    if (bias) result[2] = args.graph.output(result[1].node, 1);
  } else if (bias) {
    result[2] = args.graph.add(BiasBackward{}, {diff_dst});
  }
  if (args.needed[0]) result[0] = args.graph.add(FullyConnectedBackwardData{src.shape()}, {diff_dst, weights});
  return result;
}

// With A and B the matrices after transposing: dA = G·Bᵀ and dB = Aᵀ·G; a transposed input gets the transpose.
std::vector<Tensor> gradient(const MatMul& op, const GradientArgs& args) {
  const Tensor a = args.inputs[0], b = args.inputs[1], g = args.output_gradients[0];
  const bool ta = op.transpose_a, tb = op.transpose_b;
  std::vector<Tensor> result(2);
  if (args.needed[1]) result[1] = tb ? matmul(g, a, true, ta) : matmul(a, g, !ta, false);
  if (args.needed[0]) result[0] = ta ? matmul(b, g, tb, true) : matmul(g, b, false, !tb);
  return result;
}

std::vector<Tensor> gradient(const Bias& op, const GradientArgs& args) {
  refuse_fused(op.activation != Activation::none);
  const Tensor diff_dst = args.output_gradients[0];
  return {diff_dst, args.needed[1] ? args.graph.add(BiasBackward{}, {diff_dst}) : Tensor{}};
}

}  // namespace trireme::op
