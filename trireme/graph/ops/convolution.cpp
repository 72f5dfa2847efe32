#include "trireme/graph/ops/convolution.hpp"

#include "trireme/graph/graph.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

Shape output_shape(const Window& window, std::int64_t groups, const TensorType& src, const TensorType& weights) {
  expect_rank(src, "src", 4, "batch x channels x height x width");
  expect_rank(weights, "weights", 4, "out x in/groups x kernel height x kernel width");
  const Shape& s = src.shape;
  const Shape& w = weights.shape;
  if (groups < 1) bad_input("groups is {}, expected 1 or more", groups);
  if (s[1] % groups != 0) bad_input("src has {} channels, which {} groups do not divide", s[1], groups);
  if (w[0] % groups != 0) bad_input("weights have {} output channels, which {} groups do not divide", w[0], groups);
  if (w[1] != s[1] / groups) {
    bad_input("weights take {} input channels per group, expected {} (src has {} channels in {} group{})", w[1],
              s[1] / groups, s[1], groups, groups == 1 ? "" : "s");
  }
  if (window.kernel != Pair{w[2], w[3]}) {
    bad_input("the window's kernel is {}x{}, expected the weights' extents {}x{}", window.kernel[0], window.kernel[1],
              w[2], w[3]);
  }
  const Pair out = window_outputs(window, {s[2], s[3]});
  return {s[0], w[0], out[0], out[1]};
}

// The conventional count: every output takes the whole kernel, including padding.
double convolution_flops(const Shape& dst, const Shape& weights) {
  return 2.0 * static_cast<double>(dst.elements()) * static_cast<double>(weights[1] * weights[2] * weights[3]);
}

}  // namespace

std::vector<TensorType> infer(const Convolution& op, Types inputs) {
  std::vector<InputSpec> specs{"src", "weights"};
  if (op.bias) specs.emplace_back("bias");
  if (op.add) specs.emplace_back("addend");
  expect_inputs(inputs, specs);
  const Shape dst = output_shape(op.window, op.groups, inputs[0], inputs[1]);
  if (op.bias) expect_shape(inputs[2], "bias", {dst[1]}, "one per output channel");
  if (op.add) expect_shape(inputs.back(), "addend", dst, "the output's shape");
  return {f32(dst)};
}

std::vector<TensorType> infer(const ConvolutionBackwardData& op, Types inputs) {
  expect_inputs(inputs, {"diff_dst", "weights"});
  const Shape dst = output_shape(op.window, op.groups, f32(op.src_shape), inputs[1]);
  expect_shape(inputs[0], "diff_dst", dst, "the shape of the convolution's output");
  return {f32(op.src_shape)};
}

std::vector<TensorType> infer(const ConvolutionBackwardWeights& op, Types inputs) {
  expect_inputs(inputs, {"src", "diff_dst"});
  const Shape dst = output_shape(op.window, op.groups, inputs[0], f32(op.weights_shape));
  expect_shape(inputs[1], "diff_dst", dst, "the shape of the convolution's output");
  std::vector<TensorType> outputs{f32(op.weights_shape)};
  if (op.bias) outputs.push_back(f32({dst[1]}));
  return outputs;
}

Cost cost(const Convolution&, Types inputs, Types outputs) {
  return {convolution_flops(outputs[0].shape, inputs[1].shape), traffic(inputs, outputs)};
}

Cost cost(const ConvolutionBackwardData&, Types inputs, Types outputs) {
  return {convolution_flops(inputs[0].shape, inputs[1].shape), traffic(inputs, outputs)};
}

Cost cost(const ConvolutionBackwardWeights& op, Types inputs, Types outputs) {
  return {convolution_flops(inputs[1].shape, op.weights_shape), traffic(inputs, outputs)};
}

// Weights before data: their gradient can be sent, and src freed, while backward continues.
std::vector<Tensor> gradient(const Convolution& op, const GradientArgs& args) {
  refuse_fused(op.add || op.activation != Activation::none);
  const Tensor src = args.inputs[0], weights = args.inputs[1], diff_dst = args.output_gradients[0];
  const bool bias = op.bias && args.needed[2];
  std::vector<Tensor> result(args.inputs.size());
  if (args.needed[1]) {
    const ConvolutionBackwardWeights backward{op.window, op.groups, weights.shape(), bias};
    result[1] = args.graph.add(backward, {src, diff_dst});
    if (bias) result[2] = args.graph.output(result[1].node, 1);
  } else if (bias) {
    result[2] = args.graph.add(BiasBackward{}, {diff_dst});
  }
  if (args.needed[0]) {
    result[0] = args.graph.add(ConvolutionBackwardData{op.window, op.groups, src.shape()}, {diff_dst, weights});
  }
  return result;
}

}  // namespace trireme::op
