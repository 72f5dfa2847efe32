// The gradients of pooling. Each thread gathers what one place of src gets from the windows that cover it.
#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/pooling.cuh"

namespace trireme::cuda {
namespace {

// The windows that cover a cell along one axis, from the last to the first: window last − i sees the cell at its
// position offset + i·stride. Of fixed windows as many as there can be, whether they cover this cell or not.
struct Cover {
  int last, offset, count;
};

template <typename Window>
__device__ Cover cover(int cell, int pad, int kernel, int stride, int windows) {
  const int last = (cell + pad) / stride;
  if constexpr (Window::kFixed) {
    constexpr int kCount = (Window::kSize + Window::kStep - 1) / Window::kStep;
    return {last, (cell + pad) % stride, kCount};
  } else {
    const int before = cell + pad - kernel;  // the last place where a window ends before the cell
    const int first = before < 0 ? 0 : before / stride + 1;
    const int end = min(last + 1, windows);
    return {end - 1, cell + pad - (end - 1) * stride, end - first};
  }
}

// The windows of dst that cover a place of src, each with the place's position in it:
// visit(row of dst, column of dst, row in the window, column in the window).
template <typename Window, typename Visit>
__device__ void for_each_window(const PoolGeometry& g, const PoolPlace& place, Visit visit) {
  const int kernel_height = Window::kernel_height(g), kernel_width = Window::kernel_width(g);
  const int stride_height = Window::stride_height(g), stride_width = Window::stride_width(g);
  const Cover rows = cover<Window>(place.row, g.pad_top, kernel_height, stride_height, g.dst_height);
  const Cover columns = cover<Window>(place.column, g.pad_left, kernel_width, stride_width, g.dst_width);
#pragma unroll
  for (int a = 0; a < rows.count; ++a) {
    const int row = rows.last - a, row_inside = rows.offset + a * stride_height;
    if (row < 0 || row >= g.dst_height || row_inside >= kernel_height) continue;
#pragma unroll
    for (int b = 0; b < columns.count; ++b) {
      const int column = columns.last - b, column_inside = columns.offset + b * stride_width;
      if (column < 0 || column >= g.dst_width || column_inside >= kernel_width) continue;
      visit(row, column, row_inside, column_inside);
    }
  }
}

// The cells of src that come before a place in the windows that cover it. Cells outside the image are no numbers.
template <typename Unit, int N, typename Window>
class EarlierCells {
 public:
  __device__ EarlierCells(const PoolGeometry& g, const Unit* image, const PoolPlace& place, int packs)
      : g_(g), image_(image), place_(place), packs_(packs) {
    if constexpr (kKept) {
#pragma unroll
      for (int i = 0; i < kCells; ++i) cells_[i] = read(i / kWidth - kReach, i % kWidth - kReach);
    }
  }
  // By their distance from the place.
  __device__ Pack<Unit, N> at(int rows, int columns) const {
    if constexpr (kKept) {
      return cells_[(rows + kReach) * kWidth + columns + kReach];
    } else {
      return read(rows, columns);
    }
  }

 private:
  // Where windows move by one cell, each cell is in many that cover the place, and distances are known when compiling.
  static constexpr bool kKept = Window::kStep == 1;
  static constexpr int kReach = Window::kSize - 1;
  static constexpr int kWidth = 2 * kReach + 1;
  static constexpr int kCells = kKept ? kReach * kWidth + kReach : 1;

  __device__ Pack<Unit, N> read(int rows, int columns) const {
    const int h = place_.row + rows, w = place_.column + columns;
    if (h < 0 || w < 0 || w >= g_.src_width) return no_numbers<Unit, N>();
    return load_pack<Unit, N>(image_ + ((h * g_.src_width + w) * packs_ + place_.pack) * N);
  }

  const PoolGeometry& g_;
  const Unit* __restrict__ image_;
  const PoolPlace& place_;
  int packs_;
  Pack<Unit, N> cells_[kCells];
};

__device__ inline float masked(float unit, unsigned bits) { return __uint_as_float(__float_as_uint(unit) & bits); }
__device__ inline Bf16 masked(Bf16 unit, unsigned bits) { return bits != 0 ? unit : from_float<Bf16>(0.0f); }
__device__ inline Bf16Pair masked(Bf16Pair unit, unsigned bits) {
  const unsigned kept = reinterpret_cast<const unsigned&>(unit) & bits;
  return reinterpret_cast<const Bf16Pair&>(kept);
}

template <typename Unit, int N, typename Window>
__global__ void __launch_bounds__(kPoolThreads)
    gather_of_maxima(const PoolGeometry g, const Unit* __restrict__ diff_dst, const Unit* __restrict__ src,
                     const Unit* __restrict__ dst, Unit* __restrict__ diff_src, bool relu) {
  constexpr int kPackElements = N * kElements<Unit>;
  const int packs = g.channels / kPackElements;
  const PoolPlace place = pool_place(packs);
  if (place.row >= g.src_height || place.column >= g.src_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_units = static_cast<std::int64_t>(g.dst_height) * g.dst_width * packs * N;
  const int own_at = ((place.row * g.src_width + place.column) * packs + place.pack) * N;
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    const Unit* const src_image = src + image * src_units;
    const Pack<Unit, N> own = load_pack<Unit, N>(src_image + own_at);
    const EarlierCells<Unit, N, Window> earlier(g, src_image, place, packs);
    float sums[kPackElements] = {};
    for_each_window<Window>(g, place, [&](int row, int column, int row_inside, int column_inside) {
      const std::int64_t at = image * dst_units + ((row * g.dst_width + column) * packs + place.pack) * N;
      const Pack<Unit, N> maxima = load_pack<Unit, N>(dst + at);
      Pack<Unit, N> diff = load_pack<Unit, N>(diff_dst + at);
      unsigned mine[N];
      for (int k = 0; k < N; ++k) mine[k] = equal_bits(own.values[k], maxima.values[k]);
#pragma unroll
      for (int i = 0; i < Window::kernel_height(g); ++i) {
#pragma unroll
        for (int j = 0; j < Window::kernel_width(g); ++j) {
          if (i > row_inside || (i == row_inside && j >= column_inside)) continue;
          const Pack<Unit, N> cell = earlier.at(i - row_inside, j - column_inside);
          for (int k = 0; k < N; ++k) mine[k] &= ~equal_bits(cell.values[k], maxima.values[k]);
        }
      }
      for (int k = 0; k < N; ++k) diff.values[k] = masked(diff.values[k], mine[k]);
      add<Unit, N>(diff, 1.0f, sums);
    });
    if (relu) {
      float values[kPackElements] = {};
      add<Unit, N>(own, 1.0f, values);
      for (int k = 0; k < kPackElements; ++k) sums[k] = values[k] > 0 ? sums[k] : 0.0f;
    }
    store_pack<Unit, N>(diff_src + image * src_units + own_at, to_pack<Unit, N>(sums));
  }
}

template <typename Unit, int N, typename Window>
__global__ void __launch_bounds__(kPoolThreads)
    gather_of_averages(const PoolGeometry g, const Unit* __restrict__ diff_dst, Unit* __restrict__ diff_src) {
  constexpr int kPackElements = N * kElements<Unit>;
  const int packs = g.channels / kPackElements;
  const PoolPlace place = pool_place(packs);
  if (place.row >= g.src_height || place.column >= g.src_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_units = static_cast<std::int64_t>(g.dst_height) * g.dst_width * packs * N;
  const int own_at = ((place.row * g.src_width + place.column) * packs + place.pack) * N;
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    float sums[kPackElements] = {};
    for_each_window<Window>(g, place, [&](int row, int column, int, int) {
      const std::int64_t at = image * dst_units + ((row * g.dst_width + column) * packs + place.pack) * N;
      add<Unit, N>(load_pack<Unit, N>(diff_dst + at), average_weight<Window>(g, row, column), sums);
    });
    store_pack<Unit, N>(diff_src + image * src_units + own_at, to_pack<Unit, N>(sums));
  }
}

}  // namespace

void launch_max_pool_backward(cudaStream_t stream, const PoolGeometry& g, DataType type,
                              const MaxPoolBackward& memory) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const PoolGrid grid = pool_grid(g.src_height, g.src_width, g.channels / (N * kElements<Unit>), g.images);
        gather_of_maxima<Unit, N, Window><<<grid.blocks, grid.threads, 0, stream>>>(
            g, static_cast<const Unit*>(memory.diff_dst), static_cast<const Unit*>(memory.src),
            static_cast<const Unit*>(memory.dst), static_cast<Unit*>(memory.diff_src), memory.relu);
      });
  check(cudaGetLastError(), "the gradient of max pooling cannot be started");
}

void launch_average_pool_backward(cudaStream_t stream, const PoolGeometry& g, DataType type, const void* diff_dst,
                                  void* diff_src) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const PoolGrid grid = pool_grid(g.src_height, g.src_width, g.channels / (N * kElements<Unit>), g.images);
        gather_of_averages<Unit, N, Window><<<grid.blocks, grid.threads, 0, stream>>>(
            g, static_cast<const Unit*>(diff_dst), static_cast<Unit*>(diff_src));
      });
  check(cudaGetLastError(), "the gradient of average pooling cannot be started");
}

}  // namespace trireme::cuda
