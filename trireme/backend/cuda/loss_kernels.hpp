// Launches softmax, its losses and accuracies. Defined in loss.cu, used by loss.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// A tensor as rows of the last axis.
struct LossRows {
  std::int64_t count = 0;
  std::int64_t width = 0;
};

void launch_softmax(cudaStream_t stream, LossRows rows, DataType src_type, const void* src, float* dst);

struct SoftmaxBackwardMemory {
  DataType diff_dst_type;
  const void* diff_dst;
  const float* dst;
  DataType diff_src_type;
  void* diff_src;
};
void launch_softmax_backward(cudaStream_t stream, LossRows rows, const SoftmaxBackwardMemory& memory);

struct CrossEntropyMemory {
  DataType logits_type;
  const void* logits;
  const std::int32_t* labels;
  float* losses;
  float* probabilities;
};
void launch_cross_entropy(cudaStream_t stream, LossRows rows, float label_smoothing, const CrossEntropyMemory& memory);

struct CrossEntropyBackwardMemory {
  const float* probabilities;
  const std::int32_t* labels;
  const float* diff_losses;
  DataType diff_logits_type;
  void* diff_logits;
};
void launch_cross_entropy_backward(cudaStream_t stream, LossRows rows, float label_smoothing,
                                   const CrossEntropyBackwardMemory& memory);

struct TopKMemory {
  DataType logits_type;
  const void* logits;
  const std::int32_t* labels;
  std::int32_t* hits;  // scratch, one per row
  float* share;
};
void launch_top_k(cudaStream_t stream, LossRows rows, std::int64_t k, const TopKMemory& memory);

}  // namespace trireme::cuda
