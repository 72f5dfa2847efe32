// Launches the device code of batch normalisation: batch_norm_forward.cu and batch_norm_backward.cu. Used by
// normalization.cpp. Every launch has two passes over the data, one that sums per channel and one that writes; what the
// first finds out goes to the second through scratch memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// A tensor as batch x channels x inner, of f32, bf16 or f16. With channels last, rows of all channels follow each
// other.
struct NormShape {
  std::int64_t batch, channels, inner;
  bool channels_last;
  DataType type;
  std::int64_t per_channel() const { return batch * inner; }
};

// Memory and parts of the GPU for one launch.
struct NormWorkspace {
  cudaStream_t stream;
  int multiprocessors;
  void* scratch;       // batch_norm_scratch_bytes()
  unsigned* counters;  // batch_norm_counters(), all zero before and after each launch, in memory that nothing else uses
};

std::int64_t batch_norm_scratch_bytes(const NormShape& shape, int multiprocessors);
std::int64_t batch_norm_counters(const NormShape& shape);

// dst = activation(gamma·(src − mean)/sqrt(variance + epsilon) + beta + addend). dst may be src or addend.
struct NormForward {
  const void* src;
  const float* gamma;  // or null: 1
  const float* beta;
  const void* addend;  // or null
  void* dst;
  float epsilon;
  bool relu;
};
// Takes the statistics of src, and writes them.
void launch_batch_norm(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments, float* mean,
                       float* variance);
// Takes the statistics given; needs no counters.
void launch_batch_norm_inference(const NormWorkspace& place, const NormShape& shape, const NormForward& arguments,
                                 const float* mean, const float* variance);

// The gradient that comes in is diff_dst + diff_more, where the activation was not zero: where dst > 0, or, with beta,
// where the forward kernel's arithmetic gives more than 0 from src. diff_src may be any of the data that is read;
// diff_addend too, but for src.
struct NormBackward {
  const void* src;
  const float* mean;
  const float* variance;
  const float* gamma;  // or null: 1
  const void* diff_dst;
  const void* diff_more;  // or null
  const void* dst;        // or null: no mask of dst
  const float* beta;      // or null: no mask of src
  void* diff_src;
  float* diff_beta;
  float* diff_gamma;  // or null
  void* diff_addend;  // or null
  float epsilon;
};
void launch_batch_norm_backward(const NormWorkspace& place, const NormShape& shape, const NormBackward& arguments);

}  // namespace trireme::cuda
