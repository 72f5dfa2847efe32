#include "trireme/graph/ops/pooling.hpp"

#include "trireme/graph/graph.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

Shape output_shape(const Window& window, const TensorType& src) {
  expect_rank(src, "src", 4, "batch x channels x height x width");
  if (window.dilation != Pair{1, 1}) {
    bad_input("dilation is {}x{}, expected 1x1: pooling does not support dilation", window.dilation[0],
              window.dilation[1]);
  }
  const Pair out = window_outputs(window, {src.shape[2], src.shape[3]});
  for (std::size_t a = 0; a < 2; ++a) {
    if (window.pad_before[a] >= window.kernel[a] || window.pad_after[a] >= window.kernel[a]) {
      bad_input(
          "a window lies wholly in the padding: {} {} before and {} after with a kernel of {}; expected padding "
          "smaller than the kernel",
          a == 0 ? "height" : "width", window.pad_before[a], window.pad_after[a], window.kernel[a]);
    }
  }
  return {src.shape[0], src.shape[1], out[0], out[1]};
}

double pool_flops(const TensorType& dst, const Window& window) {
  return elements(dst) * static_cast<double>(window.kernel[0] * window.kernel[1]);
}

}  // namespace

std::vector<TensorType> infer(const Pool& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  return {f32(output_shape(op.window, inputs[0]))};
}

std::vector<TensorType> infer(const PoolBackward& op, Types inputs) {
  std::vector<InputSpec> specs{"diff_dst"};
  if (op.kind == PoolKind::max) specs.insert(specs.end(), {"src", "dst"});
  expect_inputs(inputs, specs);
  if (op.kind != PoolKind::max && op.activation != Activation::none)
    bad_input("average pooling has no gradient for a fused activation; expected max pooling");
  const Shape dst = output_shape(op.window, f32(op.src_shape));
  expect_shape(inputs[0], "diff_dst", dst, "the shape of the pool's output");
  if (op.kind == PoolKind::max) {
    expect_shape(inputs[1], "src", op.src_shape, "the shape of the pool's input");
    expect_shape(inputs[2], "dst", dst, "the shape of the pool's output");
  }
  return {f32(op.src_shape)};
}

Cost cost(const Pool& op, Types inputs, Types outputs) {
  return {pool_flops(outputs[0], op.window), traffic(inputs, outputs)};
}

Cost cost(const PoolBackward& op, Types inputs, Types outputs) {
  return {pool_flops(inputs[0], op.window), traffic(inputs, outputs)};
}

std::vector<Tensor> gradient(const Pool& op, const GradientArgs& args) {
  std::vector<Tensor> inputs{args.output_gradients[0]};
  if (op.kind == PoolKind::max) inputs.insert(inputs.end(), {args.inputs[0], args.outputs[0]});
  return {args.graph.add(PoolBackward{op.kind, op.window, args.inputs[0].shape()}, std::move(inputs))};
}

}  // namespace trireme::op
