// Launches local response normalization. Defined in normalization_lrn.cu, used by normalization_lrn.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// A tensor as outer x channels x inner; with channels last, inner is 1.
struct LrnGeometry {
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  std::int64_t size = 5;  // number of neighboring channels, odd
  float alpha_per_cell = 0;
  float beta = 0;
  float k = 1;
};

void launch_lrn(cudaStream_t stream, const LrnGeometry& geometry, DataType type, const void* src, void* dst);
void launch_lrn_backward(cudaStream_t stream, const LrnGeometry& geometry, DataType type, const void* src,
                         const void* diff_dst, void* diff_src);

}  // namespace trireme::cuda
