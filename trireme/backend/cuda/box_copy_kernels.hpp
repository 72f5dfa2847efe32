// Copies between tensors of rank 4 that differ in extents, layout or type. Convolutions make cuDNN's problem with it.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// to[i] = from[i - shift] if inside from, else 0, for all i of `to`. Axes in memory order of `to`, outermost first.
struct BoxCopy {
  std::array<std::int64_t, 4> to_extents, from_extents, from_strides, shift;
  DataType to_type, from_type;
};

void launch_box_copy(cudaStream_t stream, const BoxCopy& copy, const void* from, void* to, int multiprocessors);

}  // namespace trireme::cuda
