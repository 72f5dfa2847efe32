// Launches elementwise kernels. Defined in elementwise.cu and dropout.cu, used by elementwise.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include "trireme/backend/cuda/run_values.hpp"
#include "trireme/backend/cuda/walk.hpp"
#include "trireme/graph/ops/elementwise.hpp"

namespace trireme::cuda {

struct FlatTensor {
  std::int64_t elements;
  DataType type;
};

void launch_unary(cudaStream_t stream, const op::Unary& operation, const FlatTensor& tensor, const void* src,
                  void* dst);
void launch_unary_backward(cudaStream_t stream, const op::UnaryBackward& operation, const FlatTensor& tensor,
                           const void* diff_dst, const void* data, void* diff_src);

// dst is dense in the order of the walk, over packs of width 1 or full_pack(dst_type); a and b are read at its offsets.
struct BinaryMap {
  op::Binary operation;
  int width;
  Walk<2> walk;
  DataType a_type, b_type, dst_type;
};
void launch_binary(cudaStream_t stream, const BinaryMap& map, const void* a, const void* b, void* dst);

struct BroadcastMap {
  float scale;
  int width;
  Walk<1> walk;
  DataType src_type, dst_type;
};
void launch_broadcast(cudaStream_t stream, const BroadcastMap& map, const void* src, void* dst);

// Samples in memory order: row-major if pixels is 1, else pixels x channels.
struct DropoutMap {
  op::Dropout operation;
  std::int64_t samples, channels, pixels;
  DataType type;
};
void launch_dropout(cudaStream_t stream, const DropoutMap& map, const RunValues* values, const void* src, void* dst);

}  // namespace trireme::cuda
