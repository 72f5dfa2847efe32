// Copies of tensors from one format to another.
#include <algorithm>

#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"
#include "trireme/backend/function_kernel.hpp"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

// Batches of matrices: dst[batch][row][column] = src[batch][column][row].
struct Transposition {
  std::int64_t batches, rows, columns;               // of dst, which is dense
  std::int64_t src_batch_stride, src_column_stride;  // rows are contiguous in src
};

// Images of 3 channels to channels last, 4 rows and 3 columns per thread. Rows and strides are multiples of 4.
constexpr int kImageChannels = 3;
constexpr int kImageRun = 4;

// From plain order to image_layout(fold, dst's type).
struct Images {
  std::int64_t count;
  int channels;
  std::int64_t height, width;
};

// Memory order as digits of a position, innermost first: the layout's blocks, then its axes.
constexpr int kMaxDigits = 2 * kMaxAxes;
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

template <typename From, typename To>
__global__ void convert_kernel(std::int64_t elements, const From* src, To* dst) {
  constexpr int kWidth = 8;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (first + kWidth <= elements) {
    store_values<To, kWidth>(dst + first, load_values<From, kWidth>(src + first));
  } else {
    for (std::int64_t i = first; i < elements; ++i) dst[i] = from_float<To>(to_float(src[i]));
  }
}

// Tiles pass through shared memory, so that both sides are accessed along their rows.
constexpr int kTile = 32;
constexpr int kTileRows = 8;  // of threads: each has four elements of a tile

template <typename From, typename To>
__global__ void transpose_kernel(Transposition shape, const From* src, To* dst) {
  __shared__ float tile[kTile][kTile + 1];
  const std::int64_t row_tiles = (shape.rows + kTile - 1) / kTile;
  const std::int64_t column_tiles = (shape.columns + kTile - 1) / kTile;
  const std::int64_t block = blockIdx.x;
  const std::int64_t first_column = block % column_tiles * kTile;
  const std::int64_t first_row = block / column_tiles % row_tiles * kTile;
  const std::int64_t batch = block / column_tiles / row_tiles;

  const From* const from = src + batch * shape.src_batch_stride;
  const std::int64_t row = first_row + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const std::int64_t column = first_column + threadIdx.y + i;
    if (row < shape.rows && column < shape.columns)
      tile[threadIdx.y + i][threadIdx.x] = to_float(from[column * shape.src_column_stride + row]);
  }
  __syncthreads();
  To* const to = dst + batch * shape.rows * shape.columns;
  const std::int64_t column = first_column + threadIdx.x;
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const std::int64_t written = first_row + threadIdx.y + i;
    if (written < shape.rows && column < shape.columns)
      to[written * shape.columns + column] = from_float<To>(tile[threadIdx.x][threadIdx.y + i]);
  }
}

template <typename From, typename To>
__global__ void image_transpose_kernel(Transposition shape, FastDivide runs, std::uint32_t positions, const From* src,
                                       To* dst) {
  const std::uint32_t position = thread_position();
  if (position >= positions) return;
  const std::uint32_t batch = quotient(position, runs);
  const std::int64_t row = static_cast<std::int64_t>(position - batch * runs.divisor) * kImageRun;
  const From* const from = src + batch * shape.src_batch_stride + row;
  Values<kImageRun> planes[kImageChannels];
#pragma unroll
  for (int channel = 0; channel < kImageChannels; ++channel)
    planes[channel] = load_values<From, kImageRun>(from + channel * shape.src_column_stride);
  To* const to = dst + static_cast<std::int64_t>(position) * kImageRun * kImageChannels;
#pragma unroll
  for (int pack = 0; pack < kImageChannels; ++pack) {
    Values<kImageRun> mixed;
#pragma unroll
    for (int i = 0; i < kImageRun; ++i) {
      const int element = pack * kImageRun + i;
      mixed.at[i] = planes[element % kImageChannels].at[element / kImageChannels];
    }
    store_values<To, kImageRun>(to + pack * kImageRun, mixed);
  }
}

// 16-byte units of folded pixels ([row][column][channel]) that a thread writes, a block's threads apart.
constexpr int kUnitsPerThread = 4;

struct FoldedImages {
  Images images;
  std::uint32_t units;
  FastDivide columns, rows;  // of folded pixels
};

template <typename From, typename To, int kFold>
__global__ void image_reorder_kernel(FoldedImages folded, const From* __restrict__ src, To* __restrict__ dst) {
  constexpr int kWidth = kPack<To>;
  constexpr int kChannels = kFold == 1 ? kWidth : 4;
  constexpr int kUnits = kFold * kFold * kChannels / kWidth;  // of a folded pixel
  const Images& images = folded.images;
  const std::int64_t plane = images.height * images.width;
  Values<kWidth> values[kUnitsPerThread];
  const std::uint32_t first = blockIdx.x * (kThreads * kUnitsPerThread) + threadIdx.x;
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    const std::uint32_t unit = first + k * kThreads;
    if (unit >= folded.units) continue;
    const std::uint32_t pixel = unit / kUnits;
    const std::uint32_t line = quotient(pixel, folded.columns);
    const std::uint32_t image = quotient(line, folded.rows);
    const std::int64_t top = static_cast<std::int64_t>(line - image * folded.rows.divisor) * kFold;
    const std::int64_t left = static_cast<std::int64_t>(pixel - line * folded.columns.divisor) * kFold;
    const From* const from = src + image * images.channels * plane;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const int inner = static_cast<int>(unit % kUnits) * kWidth + i;
      const int channel = inner % kChannels;
      const std::int64_t h = top + inner / (kChannels * kFold), w = left + inner / kChannels % kFold;
      const bool there = channel < images.channels && h < images.height && w < images.width;
      values[k].at[i] = there ? to_float(from[channel * plane + h * images.width + w]) : 0.0f;
    }
  }
#pragma unroll
  for (int k = 0; k < kUnitsPerThread; ++k) {
    const std::uint32_t unit = first + k * kThreads;
    if (unit < folded.units) store_values<To, kWidth>(dst + static_cast<std::int64_t>(unit) * kWidth, values[k]);
  }
}

template <typename From, typename To>
__global__ void any_reorder_kernel(const __grid_constant__ AnyReorder reorder, const From* src, To* dst) {
  const std::int64_t position = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (position >= reorder.positions) return;
  std::int64_t index[kMaxAxes] = {};
  std::int64_t rest = position;
  for (int digit = 0; digit < reorder.dst.digits; ++digit) {
    index[reorder.dst.axis[digit]] += rest % reorder.dst.extent[digit] * reorder.dst.place[digit];
    rest /= reorder.dst.extent[digit];
  }
  bool padding = false;
  for (int axis = 0; axis < reorder.rank; ++axis) {
    index[axis] -= reorder.shift[axis];
    padding = padding || index[axis] < 0 || index[axis] >= reorder.extents[axis];
  }
  std::int64_t offset = 0;
  for (int digit = 0; digit < reorder.src.digits; ++digit) {
    const std::int64_t value = index[reorder.src.axis[digit]] / reorder.src.place[digit] % reorder.src.extent[digit];
    offset += value * reorder.src.stride[digit];
  }
  dst[position] = from_float<To>(padding ? 0.0f : to_float(src[offset]));
}

// launch(src, dst), which gets typed memory, as a function of untyped memory. what: for an error.
template <typename Launch>
auto copy_function(DataType from, DataType to, const char* what, Launch launch) {
  return [=](const void* src, void* dst) {
    // i32 is moved as f32: the bits stay the same.
    const auto moved_as = [](DataType type) { return type == DataType::i32 ? DataType::f32 : type; };
    with_element(moved_as(from), [&]<typename From>(From) {
      with_element(moved_as(to),
                   [&]<typename To>(To) { launch(static_cast<const From*>(src), static_cast<To*>(dst)); });
    });
    check(cudaGetLastError(), what);
  };
}

template <typename Copy>
KernelChoice reorder_kernel(const TensorDesc& from, const Format& to, std::string implementation, Copy copy) {
  const auto function = [copy](const Operands& operands, const RunContext&) {
    copy(operands.input<void>(0), operands.output<void>());
  };
  KernelChoice choice;
  choice.inputs = {from.format()};
  choice.outputs = {to};
  choice.implementation = std::move(implementation);
  choice.kernel = std::make_unique<FunctionKernel<decltype(function)>>(function);
  return choice;
}

KernelChoice same_order(const TensorDesc& from, const Format& to, CudaDevice& device) {
  if (from.dtype != to.dtype) {
    const auto launch = [elements = from.layout.elements(from.shape), &device](const auto* src, auto* dst) {
      convert_kernel<<<blocks_of_threads((elements + 7) / 8), kThreads, 0, device.stream()>>>(elements, src, dst);
    };
    return reorder_kernel(from, to, "own:convert", copy_function(from.dtype, to.dtype, "a conversion", launch));
  }
  KernelChoice choice = reorder_kernel(from, to, "copy", [bytes = from.bytes(), &device](const void* src, void* dst) {
    if (src != dst) device.copy(dst, src, bytes);
  });
  choice.in_place = {{0, 0}};
  return choice;
}

// box: in the order of dst, over src.
bool is_transposition(const Box& box) {
  return (box.axes() == 2 || box.axes() == 3) && box.stride(box.axes() - 2) == 1;
}

KernelChoice transposed(const TensorDesc& from, const Format& to, const Box& box, CudaDevice& device) {
  const int columns = box.axes() - 1, rows = box.axes() - 2;
  const bool batched = box.axes() == 3;
  const Transposition shape{.batches = batched ? box.extent(0) : 1,
                            .rows = box.extent(rows),
                            .columns = box.extent(columns),
                            .src_batch_stride = batched ? box.stride(0) : 0,
                            .src_column_stride = box.stride(columns)};
  if (shape.columns == kImageChannels && shape.rows % kImageRun == 0 && shape.src_batch_stride % kImageRun == 0 &&
      shape.src_column_stride % kImageRun == 0) {
    const std::int64_t runs = shape.rows / kImageRun;
    const std::uint32_t positions = checked_positions(shape.batches * runs);
    const auto launch = [=, &device](const auto* src, auto* dst) {
      image_transpose_kernel<<<blocks_of_threads(positions), kThreads, 0, device.stream()>>>(shape, FastDivide(runs),
                                                                                             positions, src, dst);
    };
    return reorder_kernel(from, to, "own:image",
                          copy_function(from.dtype, to.dtype, "a transposition of images", launch));
  }
  const std::uint32_t tiles =
      checked_positions(shape.batches * ((shape.rows + kTile - 1) / kTile) * ((shape.columns + kTile - 1) / kTile));
  const auto launch = [=, &device](const auto* src, auto* dst) {
    transpose_kernel<<<tiles, dim3(kTile, kTileRows), 0, device.stream()>>>(shape, src, dst);
  };
  return reorder_kernel(from, to, "own:transpose", copy_function(from.dtype, to.dtype, "a transposition", launch));
}

DigitOrder digits_of(const Shape& shape, const Layout& layout) {
  DigitOrder order;
  std::int64_t stride = 1;
  std::vector<std::int64_t> places(layout.order.size(), 1);
  const auto add = [&](int axis, std::int64_t extent) {
    if (order.digits == kMaxDigits) bad_input("layout {} has too many blocks", layout.name());
    std::int64_t& place = places[axis];
    order.axis[order.digits] = axis;
    order.extent[order.digits] = extent;
    order.place[order.digits] = place;
    order.stride[order.digits] = stride;
    ++order.digits;
    place *= extent;
    stride *= extent;
  };
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) add(block->axis, block->size);
  for (auto axis = layout.order.rbegin(); axis != layout.order.rend(); ++axis) {
    const std::int64_t block = places[*axis];
    add(*axis, (shape[*axis] + block - 1) / block);
  }
  return order;
}

// The fold for which this is image_layout, or 0.
int fold_of(const Format& format) {
  for (const int fold : {1, 2}) {
    if (format.dtype != DataType::i32 && format.layout == image_layout(fold, format.dtype)) return fold;
  }
  return 0;
}

template <int kFold>
KernelChoice folded_image(const TensorDesc& from, const Format& to, CudaDevice& device) {
  const Images images{.count = from.shape[0],
                      .channels = static_cast<int>(from.shape[1]),
                      .height = from.shape[2],
                      .width = from.shape[3]};
  const auto launch = [images, &device]<typename From, typename To>(const From* src, To* dst) {
    constexpr int kUnits = kFold == 1 ? 1 : kFold * kFold * 4 / kPack<To>;
    const std::int64_t rows = (images.height + kFold - 1) / kFold, columns = (images.width + kFold - 1) / kFold;
    const FoldedImages folded{.images = images,
                              .units = checked_positions(images.count * rows * columns * kUnits),
                              .columns = FastDivide(columns),
                              .rows = FastDivide(rows)};
    const unsigned blocks = (folded.units + kThreads * kUnitsPerThread - 1) / (kThreads * kUnitsPerThread);
    image_reorder_kernel<From, To, kFold><<<blocks, kThreads, 0, device.stream()>>>(folded, src, dst);
  };
  return reorder_kernel(from, to, "own:folded_image",
                        copy_function(from.dtype, to.dtype, "a reorder of images", launch));
}

}  // namespace

CopyFunction any_reorder(const TensorDesc& from, const TensorDesc& to, CudaDevice& device,
                         const std::array<std::int64_t, 4>& shift) {
  const int rank = from.shape.rank();
  if (rank > kMaxAxes)
    bad_input("a tensor of shape {} has too many axes, expected at most {}", to_string(from.shape), kMaxAxes);
  AnyReorder reorder{.positions = to.layout.elements(to.shape),
                     .rank = rank,
                     .src = digits_of(from.shape, from.layout),
                     .dst = digits_of(to.shape, to.layout)};
  std::copy(from.shape.begin(), from.shape.end(), reorder.extents);
  std::copy(shift.begin(), shift.end(), reorder.shift);
  return copy_function(from.dtype, to.dtype, "a reorder", [reorder, &device](const auto* src, auto* dst) {
    any_reorder_kernel<<<blocks_of_threads(reorder.positions), kThreads, 0, device.stream()>>>(reorder, src, dst);
  });
}

KernelChoice make_reorder(const TensorDesc& from, const Format& to, CudaDevice& device) {
  if (from.dtype != to.dtype && (from.dtype == DataType::i32 || to.dtype == DataType::i32))
    fail(ErrorKind::failed, "there is no conversion from {} to {}", to_string(from.dtype), to_string(to.dtype));
  if (from.layout == to.layout) return same_order(from, to, device);
  const int fold = fold_of(to);
  if (fold > 0 && from.layout == Layout::plain(4) && from.shape[1] <= filled_channels(fold, to.dtype))
    return fold == 1 ? folded_image<1>(from, to, device) : folded_image<2>(from, to, device);
  if (from.layout.blocks.empty() && to.layout.blocks.empty()) {
    const Box box(from.shape, to.layout, {axis_strides(from.shape, from.layout)});
    if (box.is_one_run()) return same_order(from, to, device);
    if (is_transposition(box)) return transposed(from, to, box, device);
  }
  return reorder_kernel(from, to, "own:any", any_reorder(from, {to.dtype, from.shape, to.layout}, device));
}

}  // namespace trireme::cuda
