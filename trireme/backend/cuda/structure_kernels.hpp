// Launches of the kernels that move elements without computing. Defined in structure.cu, used by structure.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

// Elements are moved in units: of 16 bytes where everything is a multiple of it, else one by one. Counts are in units.

inline constexpr int kMostParts = 16;  // of one launch

// Concat and split of tensors without blocks, along any axis: a row of the whole tensor is a row of each part, one
// after the other.
struct Join {
  std::int64_t unit_bytes;
  std::uint32_t positions;   // in the columns of these parts
  FastDivide columns;        // of these parts together
  std::int64_t whole_row;    // of all parts, where there are more than one launch takes
  std::int64_t whole_first;  // column of the first of these parts
  int parts;
  std::uint32_t begins[kMostParts + 1];  // columns, from the first of these parts on; the end of the last
};
struct JoinMemory {
  void* whole;
  void* parts[kMostParts];
};
void launch_concat(cudaStream_t stream, const Join& join, const JoinMemory& memory);
void launch_split(cudaStream_t stream, const Join& join, const JoinMemory& memory);

// A box of src to a box of dst.
struct BoxMove {
  std::int64_t unit_bytes;
  Walk<2> walk;                       // src, dst; over units, offsets in units
  std::int64_t src_first, dst_first;  // where the boxes begin
};
void launch_box_move(cudaStream_t stream, const BoxMove& move, const void* src, void* dst);

void launch_fill(cudaStream_t stream, DataType type, std::int64_t elements, float value, void* dst);

}  // namespace trireme::cuda
