// Launches kernels that only move elements. Defined in structure.cu, used by structure.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

// Elements move in units: 16 bytes if everything is a multiple of that, else single elements. Counts are in units.

inline constexpr int kMostParts = 16;  // per launch

// Concat and split of tensors without blocks along any axis: a row of the whole is a row of each part in turn.
struct Join {
  std::int64_t unit_bytes;
  std::uint32_t positions;   // in the columns of these parts
  FastDivide columns;        // of these parts together
  std::int64_t whole_row;    // of all parts, also those of other launches
  std::int64_t whole_first;  // column of the first of these parts
  int parts;
  std::uint32_t begins[kMostParts + 1];  // first columns, relative to the first of these parts; then the end
};
struct JoinMemory {
  void* whole;
  void* parts[kMostParts];
};
void launch_concat(cudaStream_t stream, const Join& join, const JoinMemory& memory);
void launch_split(cudaStream_t stream, const Join& join, const JoinMemory& memory);

struct BoxMove {
  std::int64_t unit_bytes;
  Walk<2> walk;                       // src, dst; over units, offsets in units
  std::int64_t src_first, dst_first;  // where the boxes begin
};
void launch_box_move(cudaStream_t stream, const BoxMove& move, const void* src, void* dst);

void launch_fill(cudaStream_t stream, DataType type, std::int64_t elements, float value, void* dst);

}  // namespace trireme::cuda
