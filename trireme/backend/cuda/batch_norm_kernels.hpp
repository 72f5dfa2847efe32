// Launches batch normalization (batch_norm_forward.cu, batch_norm_backward.cu) for normalization.cpp. A first pass sums
// per channel and a second one writes; inference has only the second.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// A tensor as batch x channels x inner, of f32, bf16 or f16; or as rows of all channels (channels last).
struct NormShape {
  std::int64_t batch, channels, inner;
  bool channels_last;
  DataType type;
  std::int64_t per_channel() const { return batch * inner; }
};

struct NormWorkspace {
  cudaStream_t stream;
  int multiprocessors;
  void* scratch;       // batch_norm_scratch_bytes()
  unsigned* counters;  // batch_norm_counters(), zero before and after each launch, in memory that nothing else uses
};

std::int64_t batch_norm_scratch_bytes(const NormShape& shape, int multiprocessors);
std::int64_t batch_norm_counters(const NormShape& shape);

// dst = activation(gamma·(src − mean)/sqrt(variance + epsilon) + beta + addend). dst may be src or addend.
struct NormForward {
  const void* src;
  const float* gamma;  // null: 1
  const float* beta;
  const void* addend;  // may be null
  void* dst;
  float epsilon;
  bool relu;
};
// Computes the statistics of src and writes them.
void launch_batch_norm(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments, float* mean,
                       float* variance);
// Uses the given statistics; needs no counters.
void launch_batch_norm_inference(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments,
                                 const float* mean, const float* variance);

// The gradient is diff_dst + diff_more, kept where dst > 0 or, with beta, where the forward kernel's arithmetic on src
// gives more than 0. diff_src may be any tensor that is read; diff_addend too, except src.
struct NormBackward {
  const void* src;
  const float* mean;
  const float* variance;
  const float* gamma;  // null: 1
  const void* diff_dst;
  const void* diff_more;  // may be null
  const void* dst;        // null: no mask by dst
  const float* beta;      // null: no mask by src
  void* diff_src;
  float* diff_beta;
  float* diff_gamma;  // may be null
  void* diff_addend;  // may be null
  float epsilon;
};
void launch_batch_norm_backward(const NormWorkspace& place, const NormShape& shape, const NormBackward& arguments);

}  // namespace trireme::cuda
