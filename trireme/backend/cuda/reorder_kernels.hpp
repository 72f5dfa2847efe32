// Launches copies of tensors from one format to another. Defined in reorder.cu, used by reorder.cpp.
#pragma once

#include <cuda_runtime_api.h>

#include "trireme/backend/cuda/walk.hpp"

namespace trireme::cuda {

struct Conversion {
  DataType from, to;  // i32 is moved as f32: the bits stay the same
};

// Elements in the same order.
void launch_convert(cudaStream_t stream, Conversion types, std::int64_t elements, const void* src, void* dst);

// Batches of matrices: dst[batch][row][column] = src[batch][column][row].
struct Transposition {
  std::int64_t batches, rows, columns;               // of dst, which is dense
  std::int64_t src_batch_stride, src_column_stride;  // rows are contiguous in src
};
void launch_transpose(cudaStream_t stream, Conversion types, const Transposition& shape, const void* src, void* dst);

// Images of 3 channels to channels last, 4 rows and 3 columns per thread. Rows and strides are multiples of 4.
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

// Memory order as digits of a position, innermost first: the layout's blocks, then its axes.
inline constexpr int kMaxDigits = 2 * kMaxAxes;
struct DigitOrder {
  int digits = 0;
  int axis[kMaxDigits] = {};
  std::int64_t extent[kMaxDigits] = {};
  std::int64_t place[kMaxDigits] = {};   // weight of the digit in the axis's index
  std::int64_t stride[kMaxDigits] = {};  // in memory
};

// Any layouts: dst[i] = src[i - shift], or 0 if that is outside src.
struct AnyReorder {
  std::int64_t positions;               // of dst, with padding
  std::int64_t extents[kMaxAxes] = {};  // of src
  std::int64_t shift[kMaxAxes] = {};
  int rank = 0;
  DigitOrder src, dst;
};
void launch_any_reorder(cudaStream_t stream, Conversion types, const AnyReorder& reorder, const void* src, void* dst);

}  // namespace trireme::cuda
