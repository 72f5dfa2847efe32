// Launches pooling. Defined in pooling.cu and pooling_backward.cu, used by pooling.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// Channels are innermost. A plain tensor counts as images of one channel each.
struct PoolGeometry {
  std::int64_t images = 0;
  int channels = 1;
  int src_height = 0, src_width = 0;
  int dst_height = 0, dst_width = 0;
  int kernel_height = 1, kernel_width = 1;
  int stride_height = 1, stride_width = 1;
  int pad_top = 0, pad_left = 0;
  bool divide_by_inside = false;  // averages divide by the cells inside the image, not the kernel size
};

void launch_max_pool(cudaStream_t stream, const PoolGeometry& geometry, DataType type, const void* src, void* dst);
void launch_average_pool(cudaStream_t stream, const PoolGeometry& geometry, DataType type, const void* src, void* dst);

// Two steps: find the position of each window's maximum within the window, then gather each cell's gradient.
inline constexpr std::int64_t kMostWindowCells = 65535;
std::int64_t max_pool_backward_scratch_bytes(const PoolGeometry& geometry, DataType type);

struct MaxPoolBackward {
  const void* diff_dst;
  const void* src;
  void* scratch;
  void* diff_src;
  bool relu;  // src is the output of a relu, and diff_src the gradient of its input
};
void launch_max_pool_backward(cudaStream_t stream, const PoolGeometry& geometry, DataType type,
                              const MaxPoolBackward& memory);
void launch_average_pool_backward(cudaStream_t stream, const PoolGeometry& geometry, DataType type,
                                  const void* diff_dst, void* diff_src);

}  // namespace trireme::cuda
