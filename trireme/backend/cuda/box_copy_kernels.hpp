// Copies between tensors of rank 4 that differ in extents, layout or element type: a larger one is filled up with
// zeros, of a smaller one the middle is taken. Convolutions make the problem that cuDNN likes out of the one there is
// with it.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "trireme/base/shape.hpp"

namespace trireme::cuda {

// to[i] = from[i - shift] where that lies in from, else 0, for every position i of `to`. Axes are in the order of the
// memory of `to`, outermost first, so that its elements are numbered as they lie.
struct BoxCopy {
  std::array<std::int64_t, 4> to_extents, from_extents, from_strides, shift;
  DataType to_type, from_type;
};

void launch_box_copy(cudaStream_t stream, const BoxCopy& copy, const void* from, void* to, int multiprocessors);

}  // namespace trireme::cuda
