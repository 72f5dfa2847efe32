#include "trireme/graph/ops/loss.hpp"

#include "trireme/graph/graph.hpp"
#include "trireme/graph/ops/checks.hpp"

namespace trireme::op {
namespace {

void check_logits(const TensorType& logits, std::string_view name, const TensorType& labels) {
  expect_rank(logits, name, 2, "batch x classes");
  expect_shape(labels, "labels", {logits.shape[0]}, "one per sample");
}

void check_smoothing(float label_smoothing) {
  if (!(label_smoothing >= 0 && label_smoothing <= 1)) {
    bad_input("label_smoothing is {}, expected at least 0 and at most 1", label_smoothing);
  }
}

}  // namespace

std::vector<TensorType> infer(const Softmax&, Types inputs) {
  expect_inputs(inputs, {"src"});
  expect_rank_at_least(inputs[0], "src", 1, "the classes last");
  return {inputs[0]};
}

std::vector<TensorType> infer(const SoftmaxBackward&, Types inputs) {
  expect_inputs(inputs, {"diff_dst", "dst"});
  expect_rank_at_least(inputs[0], "diff_dst", 1, "the classes last");
  expect_shape(inputs[1], "dst", inputs[0].shape, "the shape of diff_dst");
  return {inputs[0]};
}

std::vector<TensorType> infer(const SoftmaxCrossEntropy& op, Types inputs) {
  expect_inputs(inputs, {"logits", {"labels", DataType::i32}});
  check_logits(inputs[0], "logits", inputs[1]);
  check_smoothing(op.label_smoothing);
  return {f32({inputs[0].shape[0]}), inputs[0]};
}

std::vector<TensorType> infer(const SoftmaxCrossEntropyBackward& op, Types inputs) {
  expect_inputs(inputs, {"probabilities", {"labels", DataType::i32}, "diff_losses"});
  check_logits(inputs[0], "probabilities", inputs[1]);
  expect_shape(inputs[2], "diff_losses", {inputs[0].shape[0]}, "one per sample");
  check_smoothing(op.label_smoothing);
  return {inputs[0]};
}

// k may exceed the number of classes, when every sample counts, so that top-5 works for any network.
std::vector<TensorType> infer(const TopKAccuracy& op, Types inputs) {
  expect_inputs(inputs, {"logits", {"labels", DataType::i32}});
  check_logits(inputs[0], "logits", inputs[1]);
  if (op.k < 1) bad_input("k is {}, expected 1 or more", op.k);
  return {f32({})};
}

std::vector<Tensor> gradient(const Softmax&, const GradientArgs& args) {
  return {args.graph.add(SoftmaxBackward{}, {args.output_gradients[0], args.outputs[0]})};
}

std::vector<Tensor> gradient(const SoftmaxCrossEntropy& op, const GradientArgs& args) {
  if (args.output_gradients[1]) {
    bad_input("the loss depends on its probabilities output, through which no gradient flows; use softmax for them");
  }
  const SoftmaxCrossEntropyBackward backward{op.label_smoothing};
  return {args.graph.add(backward, {args.outputs[1], args.inputs[1], args.output_gradients[0]}), Tensor{}};
}

}  // namespace trireme::op
