// Launches of the kernels that copy a tensor from one format to another. Defined in reorder.cu, used by reorder.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

struct Conversion {
  DataType from, to;  // i32 is moved as f32: the bits are the same
};

// Elements in the same order.
void launch_convert(cudaStream_t stream, Conversion types, std::int64_t elements, const void* src, void* dst);

// Batches of matrices: dst[batch][row][column] = src[batch][column][row].
struct Transposition {
  std::int64_t batches, rows, columns;               // of dst, which is dense
  std::int64_t src_batch_stride, src_column_stride;  // rows are neighbours in src
};
void launch_transpose(cudaStream_t stream, Conversion types, const Transposition& shape, const void* src, void* dst);

// For images of three channels to channels last: four neighbouring rows of a transposition to three columns. Rows and
// strides are multiples of four.
inline constexpr int kImageChannels = 3;
inline constexpr int kImageRun = 4;
void launch_image_transpose(cudaStream_t stream, Conversion types, const Transposition& shape, const void* src,
                            void* dst);

// From plain order to image_layout(fold, types.to).
struct Images {
  std::int64_t count;
  int channels;
  std::int64_t height, width;
  int fold;  // 1 or 2
};
void launch_image_reorder(cudaStream_t stream, Conversion types, const Images& images, const void* src, void* dst);

// Memory as digits of a position, innermost first: a layout's blocks and then its axes.
inline constexpr int kMaxDigits = 2 * kMaxAxes;
struct DigitOrder {
  int digits = 0;
  int axis[kMaxDigits] = {};
  std::int64_t extent[kMaxDigits] = {};
  std::int64_t place[kMaxDigits] = {};   // of the axis's index that one of the digit is worth
  std::int64_t stride[kMaxDigits] = {};  // in memory
};

// Any layouts: dst[i] = src[i - shift], zero where that is outside of src.
struct AnyReorder {
  std::int64_t positions;               // of dst, with padding
  std::int64_t extents[kMaxAxes] = {};  // of src
  std::int64_t shift[kMaxAxes] = {};
  int rank = 0;
  DigitOrder src, dst;
};
void launch_any_reorder(cudaStream_t stream, Conversion types, const AnyReorder& reorder, const void* src, void* dst);

}  // namespace trireme::cuda
