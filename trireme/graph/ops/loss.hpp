// Softmax, its cross-entropy with integer labels, and top-k accuracy.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// Over the last axis. inputs: src; outputs: dst
struct Softmax {
  static constexpr const char* kName = "softmax";
  static constexpr double kFlops = 5;  // maximum, difference, exponential, sum and quotient
};

// inputs: diff_dst, dst; outputs: diff_src
struct SoftmaxBackward {
  static constexpr const char* kName = "softmax_backward";
  static constexpr double kFlops = 4;
  static constexpr bool kBackward = true;
};

// inputs: logits: batch x classes, labels: i32 batch; outputs: losses: batch, probabilities: batch x classes.
// The target is (1 − label_smoothing) on the label plus label_smoothing/classes everywhere. A label outside [0,
// classes) gives a NaN loss for that sample on every backend.
struct SoftmaxCrossEntropy {
  float label_smoothing = 0;
  static constexpr const char* kName = "softmax_cross_entropy";
  static constexpr double kFlops = Softmax::kFlops;
};

// inputs: probabilities, labels, diff_losses: batch; outputs: diff_logits
struct SoftmaxCrossEntropyBackward {
  float label_smoothing = 0;
  static constexpr const char* kName = "softmax_cross_entropy_backward";
  static constexpr double kFlops = 2;
  static constexpr bool kBackward = true;
};

// inputs: logits: batch x classes, labels: i32 batch; outputs: scalar, share of samples with < k logits above its own
struct TopKAccuracy {
  std::int64_t k = 1;
  static constexpr const char* kName = "top_k_accuracy";
  static constexpr double kFlops = 1;
};

std::vector<TensorType> infer(const Softmax& op, Types inputs);
std::vector<TensorType> infer(const SoftmaxBackward& op, Types inputs);
std::vector<TensorType> infer(const SoftmaxCrossEntropy& op, Types inputs);
std::vector<TensorType> infer(const SoftmaxCrossEntropyBackward& op, Types inputs);
std::vector<TensorType> infer(const TopKAccuracy& op, Types inputs);
std::vector<Tensor> gradient(const Softmax& op, const GradientArgs& args);
std::vector<Tensor> gradient(const SoftmaxCrossEntropy& op, const GradientArgs& args);

}  // namespace trireme::op
