#include "trireme/graph/ops/normalization.hpp"

#include "trireme/graph/functions.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

// Checks src, the inputs with one value per channel, and the inputs shaped like src.
void check_normalized(Types inputs, const std::vector<InputSpec>& specs, float epsilon) {
  expect_inputs(inputs, specs);
  expect_rank_at_least(inputs[0], "src", 2, "batch x channels");
  expect_positive(epsilon, "epsilon");
  for (std::size_t i = 1; i < specs.size(); ++i) {
    const std::string_view name = specs[i].name;
    if (name == "addend" || name == "diff_dst" || name == "diff_more" || name == "dst") {
      expect_shape(inputs[i], name, inputs[0].shape, "the shape of src");
    } else {
      expect_shape(inputs[i], name, {inputs[0].shape[1]}, "one per channel of src");
    }
  }
}

void check_lrn(const Lrn& op) {
  if (op.size < 1 || op.size % 2 == 0) bad_input("size is {}, expected an odd number of 1 or more", op.size);
  expect_not_negative(op.alpha, "alpha");
  expect_finite(op.beta, "beta");
  expect_positive(op.k, "k");
}

double fused_flops(bool add, Activation activation) {
  return (add ? 1.0 : 0.0) + (activation != Activation::none ? 1.0 : 0.0);
}

// The neighbors' squares and their sum, then the power and the product.
double lrn_flops(std::int64_t size, const TensorType& src) {
  return (2.0 * static_cast<double>(size) + 3.0) * elements(src);
}

}  // namespace

std::vector<TensorType> infer(const BatchNorm& op, Types inputs) {
  std::vector<InputSpec> specs{"src"};
  if (op.gamma) specs.emplace_back("gamma");
  specs.emplace_back("beta");
  if (op.add) specs.emplace_back("addend");
  check_normalized(inputs, specs, op.epsilon);
  const TensorType statistics = f32({inputs[0].shape[1]});
  return {inputs[0], statistics, statistics};
}

std::vector<TensorType> infer(const BatchNormBackward& op, Types inputs) {
  std::vector<InputSpec> specs{"src", "mean", "variance"};
  if (op.gamma) specs.emplace_back("gamma");
  specs.emplace_back("diff_dst");
  if (op.sum) specs.emplace_back("diff_more");
  if (op.activation != Activation::none) specs.emplace_back(op.mask_from_src ? "beta" : "dst");
  check_normalized(inputs, specs, op.epsilon);
  const TensorType per_channel = f32({inputs[0].shape[1]});
  std::vector<TensorType> outputs{inputs[0], per_channel};
  if (op.gamma) outputs.push_back(per_channel);
  if (op.add) outputs.push_back(inputs[0]);
  return outputs;
}

std::vector<TensorType> infer(const BatchNormInference& op, Types inputs) {
  std::vector<InputSpec> specs{"src"};
  if (op.gamma) specs.emplace_back("gamma");
  specs.insert(specs.end(), {"beta", "mean", "variance"});
  if (op.add) specs.emplace_back("addend");
  check_normalized(inputs, specs, op.epsilon);
  return {inputs[0]};
}

std::vector<TensorType> infer(const Lrn& op, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_rank(inputs[0], "src", 4, "batch x channels x height x width");
  check_lrn(op);
  return {inputs[0]};
}

std::vector<TensorType> infer(const LrnBackward& op, Types inputs) {
  expect_inputs(inputs, {"src", "diff_dst"});
  expect_rank(inputs[0], "src", 4, "batch x channels x height x width");
  expect_shape(inputs[1], "diff_dst", inputs[0].shape, "the shape of src");
  check_lrn({op.size, op.alpha, op.beta, op.k});
  return {inputs[0]};
}

// Per element: one addition for the mean, three for the variance, a multiply-add to normalize.
Cost cost(const BatchNorm& op, Types inputs, Types outputs) {
  return {(6.0 + fused_flops(op.add, op.activation)) * elements(inputs[0]), traffic(inputs, outputs)};
}

// Per element: four for the two sums over the batch, five for the gradient of src.
Cost cost(const BatchNormBackward& op, Types inputs, Types outputs) {
  return {(9.0 + fused_flops(op.sum, op.activation)) * elements(inputs[0]), traffic(inputs, outputs)};
}

Cost cost(const BatchNormInference& op, Types inputs, Types outputs) {
  return {(2.0 + fused_flops(op.add, op.activation)) * elements(inputs[0]), traffic(inputs, outputs)};
}

Cost cost(const Lrn& op, Types inputs, Types outputs) {
  return {lrn_flops(op.size, inputs[0]), traffic(inputs, outputs)};
}

// The sum of squares again, and a second sum over the neighbors.
Cost cost(const LrnBackward& op, Types inputs, Types outputs) {
  return {2.0 * lrn_flops(op.size, inputs[0]), traffic(inputs, outputs)};
}

std::vector<Tensor> gradient(const BatchNorm& op, const GradientArgs& args) {
  refuse_fused(op.add || op.activation != Activation::none);
  if (args.output_gradients[1] || args.output_gradients[2]) {
    bad_input("the loss depends on its mean or variance output, through which no gradient flows; use output 0 only");
  }
  std::vector<Tensor> inputs{args.inputs[0], args.outputs[1], args.outputs[2]};
  if (op.gamma) inputs.push_back(args.inputs[1]);
  inputs.push_back(args.output_gradients[0]);
  const BatchNormBackward backward{.epsilon = op.epsilon, .gamma = op.gamma};
  const Tensor diff_src = args.graph.add(backward, std::move(inputs));
  const Tensor diff_beta = args.graph.output(diff_src.node, 1);
  if (!op.gamma) return {diff_src, diff_beta};
  return {diff_src, args.graph.output(diff_src.node, 2), diff_beta};
}

std::vector<Tensor> gradient(const BatchNormInference& op, const GradientArgs& args) {
  refuse_fused(op.add || op.activation != Activation::none);
  const Tensor src = args.inputs[0], diff_dst = args.output_gradients[0];
  const std::size_t beta = op.gamma ? 2 : 1;
  const Tensor mean = args.inputs[beta + 1], variance = args.inputs[beta + 2];
  Shape per_channel(std::vector<std::int64_t>(static_cast<std::size_t>(src.shape().rank()), 1));
  per_channel[1] = src.shape()[1];

  std::vector<Tensor> result(args.inputs.size());
  if (args.needed[beta]) result[beta] = args.graph.add(BiasBackward{}, {diff_dst});
  const bool needs_gamma = op.gamma && args.needed[1];
  if (!needs_gamma && !args.needed[0]) return result;
  const Tensor deviation = unary(UnaryKind::sqrt, variance + constant(args.graph, op.epsilon));
  if (needs_gamma) {
    const Tensor centred = src - reshape(mean, per_channel);
    result[1] = args.graph.add(BiasBackward{}, {diff_dst * centred}) / deviation;
  }
  if (args.needed[0]) {
    const Tensor gamma = op.gamma ? args.inputs[1] : constant(args.graph, 1.0f);
    result[0] = diff_dst * reshape(gamma / deviation, per_channel);
  }
  return result;
}

std::vector<Tensor> gradient(const Lrn& op, const GradientArgs& args) {
  const LrnBackward backward{op.size, op.alpha, op.beta, op.k};
  return {args.graph.add(backward, {args.inputs[0], args.output_gradients[0]})};
}

}  // namespace trireme::op
