// Batch normalization over all axes except axis 1, for training and inference, and local response normalization.
#pragma once

#include "trireme/graph/ops/common.hpp"

namespace trireme::op {

// Training: uses the statistics of this batch.
// inputs: src, [gamma: channels], beta: channels, [addend: like src]
// outputs: dst = activation(gamma·(src − mean)/sqrt(variance + epsilon) + beta + addend), mean, variance (biased)
struct BatchNorm {
  float epsilon = 1e-5f;
  bool gamma = true;
  bool add = false;  // fusing sets add and activation
  Activation activation = Activation::none;
  static constexpr const char* kName = "batch_norm";
};

// inputs: src, mean, variance, [gamma], diff_dst, [diff_more], [dst with activation; beta with mask_from_src]
// outputs: diff_src, diff_beta, [diff_gamma], [diff_addend: diff_dst where the activation let it through]
// With sum, diff_dst is diff_dst + diff_more; with relu it is then masked by dst > 0. If dst has no addend, the mask
// can be computed from src, which is read anyway.
struct BatchNormBackward {
  float epsilon = 1e-5f;
  bool gamma = true;
  bool add = false;  // fusing sets the rest
  Activation activation = Activation::none;
  bool sum = false;
  bool mask_from_src = false;
  static constexpr const char* kName = "batch_norm_backward";
  static constexpr bool kBackward = true;
};

// inputs: src, [gamma], beta, mean, variance (running), [addend]; outputs: dst
// The gradient treats the statistics as constants.
struct BatchNormInference {
  float epsilon = 1e-5f;
  bool gamma = true;
  bool add = false;
  Activation activation = Activation::none;
  static constexpr const char* kName = "batch_norm_inference";
};

// Across channels: dst = src · (k + alpha/size · sum of src² over size neighboring channels)^−beta
// inputs: src; outputs: dst. size is odd.
struct Lrn {
  std::int64_t size = 5;
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 1.0f;
  static constexpr const char* kName = "lrn";
};

// inputs: src, diff_dst; outputs: diff_src
struct LrnBackward {
  std::int64_t size = 5;
  float alpha = 1e-4f;
  float beta = 0.75f;
  float k = 1.0f;
  static constexpr const char* kName = "lrn_backward";
  static constexpr bool kBackward = true;
};

std::vector<TensorType> infer(const BatchNorm& op, Types inputs);
std::vector<TensorType> infer(const BatchNormBackward& op, Types inputs);
std::vector<TensorType> infer(const BatchNormInference& op, Types inputs);
std::vector<TensorType> infer(const Lrn& op, Types inputs);
std::vector<TensorType> infer(const LrnBackward& op, Types inputs);
Cost cost(const BatchNorm& op, Types inputs, Types outputs);
Cost cost(const BatchNormBackward& op, Types inputs, Types outputs);
Cost cost(const BatchNormInference& op, Types inputs, Types outputs);
Cost cost(const Lrn& op, Types inputs, Types outputs);
Cost cost(const LrnBackward& op, Types inputs, Types outputs);
std::vector<Tensor> gradient(const BatchNorm& op, const GradientArgs& args);
std::vector<Tensor> gradient(const BatchNormInference& op, const GradientArgs& args);
std::vector<Tensor> gradient(const Lrn& op, const GradientArgs& args);

}  // namespace trireme::op
