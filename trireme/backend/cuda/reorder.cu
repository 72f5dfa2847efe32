#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/reorder_kernels.hpp"
#include "trireme/backend/cuda/strided.cuh"

namespace trireme::cuda {
namespace {

// function(From{}, To{}).
template <typename Function>
void with_conversion(Conversion types, Function function) {
  const auto moved_as = [](DataType type) { return type == DataType::i32 ? DataType::f32 : type; };
  with_element(moved_as(types.from), [&]<typename From>(From from) {
    with_element(moved_as(types.to), [&]<typename To>(To to) { function(from, to); });
  });
}

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

}  // namespace

void launch_convert(cudaStream_t stream, Conversion types, std::int64_t elements, const void* src, void* dst) {
  with_conversion(types, [&]<typename From, typename To>(From, To) {
    convert_kernel<<<blocks_of_threads((elements + 7) / 8), kThreads, 0, stream>>>(
        elements, static_cast<const From*>(src), static_cast<To*>(dst));
  });
  check(cudaGetLastError(), "a conversion");
}

void launch_transpose(cudaStream_t stream, Conversion types, const Transposition& shape, const void* src, void* dst) {
  const std::int64_t tiles = shape.batches * ((shape.rows + kTile - 1) / kTile) * ((shape.columns + kTile - 1) / kTile);
  with_conversion(types, [&]<typename From, typename To>(From, To) {
    transpose_kernel<<<checked_positions(tiles), dim3(kTile, kTileRows), 0, stream>>>(
        shape, static_cast<const From*>(src), static_cast<To*>(dst));
  });
  check(cudaGetLastError(), "a transposition");
}

void launch_image_transpose(cudaStream_t stream, Conversion types, const Transposition& shape, const void* src,
                            void* dst) {
  const std::int64_t runs = shape.rows / kImageRun;
  const std::uint32_t positions = checked_positions(shape.batches * runs);
  with_conversion(types, [&]<typename From, typename To>(From, To) {
    image_transpose_kernel<<<blocks_of_threads(positions), kThreads, 0, stream>>>(
        shape, FastDivide(runs), positions, static_cast<const From*>(src), static_cast<To*>(dst));
  });
  check(cudaGetLastError(), "a transposition of images");
}

void launch_image_reorder(cudaStream_t stream, Conversion types, const Images& images, const void* src, void* dst) {
  const auto launch = [&]<typename From, typename To, int kFold>(From, To, std::integral_constant<int, kFold>) {
    constexpr int kUnits = kFold == 1 ? 1 : kFold * kFold * 4 / kPack<To>;
    const std::int64_t rows = (images.height + kFold - 1) / kFold, columns = (images.width + kFold - 1) / kFold;
    const FoldedImages folded{.images = images,
                              .units = checked_positions(images.count * rows * columns * kUnits),
                              .columns = FastDivide(columns),
                              .rows = FastDivide(rows)};
    const unsigned blocks = (folded.units + kThreads * kUnitsPerThread - 1) / (kThreads * kUnitsPerThread);
    image_reorder_kernel<From, To, kFold>
        <<<blocks, kThreads, 0, stream>>>(folded, static_cast<const From*>(src), static_cast<To*>(dst));
  };
  with_conversion(types, [&]<typename From, typename To>(From from, To to) {
    images.fold == 1 ? launch(from, to, std::integral_constant<int, 1>{})
                     : launch(from, to, std::integral_constant<int, 2>{});
  });
  check(cudaGetLastError(), "a reorder of images");
}

void launch_any_reorder(cudaStream_t stream, Conversion types, const AnyReorder& reorder, const void* src, void* dst) {
  with_conversion(types, [&]<typename From, typename To>(From, To) {
    any_reorder_kernel<<<blocks_of_threads(reorder.positions), kThreads, 0, stream>>>(
        reorder, static_cast<const From*>(src), static_cast<To*>(dst));
  });
  check(cudaGetLastError(), "a reorder");
}

}  // namespace trireme::cuda
