// The gradients of pooling. A thread gathers one position of src, or a few neighbors, from the windows that cover it.
#include <cmath>

#include "trireme/backend/cuda/pooling.cuh"
#include "trireme/base/error.hpp"

namespace trireme::cuda {
namespace {

// The windows that cover a cell along one axis, last to first: window last − i sees the cell at its position offset +
// i·stride. For fixed windows, count is the maximum, whether they all cover this cell or not.
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
    const int before = cell + pad - kernel;  // the last position where a window ends before the cell
    const int first = before < 0 ? 0 : before / stride + 1;
    const int end = min(last + 1, windows);
    return {end - 1, cell + pad - (end - 1) * stride, end - first};
  }
}

// visit(row of dst, column of dst, row in the window, column in the window) for all windows over a position of src.
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

// A cell's index in its window, in row order; kNowhere: no cell gets the gradient.
template <typename Window>
using WindowCell = std::conditional_t<Window::kFixed, std::uint8_t, std::uint16_t>;
constexpr unsigned kNowhere = 0xffff;

// The first cell with the maximum, for each element of dst. relu: none if the maximum is not positive.
template <typename Unit, int N, typename Window>
__global__ void __launch_bounds__(kPoolThreads) find_maxima(const PoolGeometry g, const Unit* __restrict__ src,
                                                            WindowCell<Window>* __restrict__ maxima, bool relu) {
  constexpr int kPackElements = N * kElements<Unit>;
  constexpr unsigned kEach = kElements<Unit> == 2 ? 0x10001 : 1;  // repeats a position for each element of a unit
  const int packs = g.channels / kPackElements;
  const PoolPlace place = pool_place(packs);
  if (place.row >= g.dst_height || place.column >= g.dst_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_elements = static_cast<std::int64_t>(g.dst_height) * g.dst_width * g.channels;
  const int to = ((place.row * g.dst_width + place.column) * packs + place.pack) * kPackElements;
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    Pack<Unit, N> best = filled<Unit, N>(-INFINITY);
    unsigned positions[N] = {};
    bool first = true;  // always counts as greater
    for_each_cell<Window, Unit, N>(
        g, src + image * src_units, place, packs, [&](const Pack<Unit, N>& cell, bool, unsigned position) {
          for (int k = 0; k < N; ++k) {
            const unsigned greater = first ? ~0u : greater_bits(cell.values[k], best.values[k]);
            positions[k] = (positions[k] & ~greater) | (position * kEach & greater);
            best.values[k] = max_of(best.values[k], cell.values[k]);
          }
          first = false;
        });
    Pack<WindowCell<Window>, kPackElements> found;
    for (int k = 0; k < N; ++k) {
      if (relu) positions[k] |= ~greater_bits(best.values[k], repeated<Unit>(0.0f));
      for (int e = 0; e < kElements<Unit>; ++e) {
        found.values[k * kElements<Unit> + e] = static_cast<WindowCell<Window>>(positions[k] >> (16 * e) & kNowhere);
      }
    }
    store_pack<WindowCell<Window>, kPackElements>(maxima + image * dst_elements + to, found);
  }
}

// sums[i] += diff[i] if the maximum is at this cell.
template <int kCount, typename Cell>
__device__ inline void add_where(const Pack<Cell, kCount>& maxima, int cell, const float* diff, float* sums) {
  for (int i = 0; i < kCount; ++i) {
    if (maxima.values[i] == cell) sums[i] += diff[i];
  }
}

// With stride kStep, kStep x kStep cells share the same windows at constant positions: one thread takes them together.
template <typename Unit, int N, typename Window>
__global__ void __launch_bounds__(kPoolThreads)
    gather_of_maxima(const PoolGeometry g, const Unit* __restrict__ diff_dst,
                     const WindowCell<Window>* __restrict__ maxima, Unit* __restrict__ diff_src) {
  constexpr int kPackElements = N * kElements<Unit>;
  constexpr int kSize = Window::kSize, kStep = Window::kStep;
  constexpr int kWindows = (kSize + kStep - 1) / kStep;  // along each axis
  const int packs = g.channels / kPackElements;
  const PoolPlace group = pool_place(packs);
  const int top = group.row * kStep - g.pad_top, left = group.column * kStep - g.pad_left;
  if (top >= g.src_height || left >= g.src_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_packs = static_cast<std::int64_t>(g.dst_height) * g.dst_width * packs;
  // Window (a, b) begins a and b steps before the group.
  const auto is_there = [&](int a, int b) {
    return group.row >= a && group.row - a < g.dst_height && group.column >= b && group.column - b < g.dst_width;
  };
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    Pack<Unit, N> diff[kWindows * kWindows];
    Pack<WindowCell<Window>, kPackElements> found[kWindows * kWindows];
#pragma unroll
    for (int a = 0; a < kWindows; ++a) {
#pragma unroll
      for (int b = 0; b < kWindows; ++b) {
        if (!is_there(a, b)) continue;
        const std::int64_t at =
            image * dst_packs + ((group.row - a) * g.dst_width + group.column - b) * packs + group.pack;
        diff[a * kWindows + b] = load_pack<Unit, N>(diff_dst + at * N);
        found[a * kWindows + b] = load_pack<WindowCell<Window>, kPackElements>(maxima + at * kPackElements);
      }
    }
    float sums[kStep * kStep][kPackElements] = {};
#pragma unroll
    for (int a = 0; a < kWindows; ++a) {
#pragma unroll
      for (int b = 0; b < kWindows; ++b) {
        if (!is_there(a, b)) continue;
        float values[kPackElements] = {};
        add<Unit, N>(diff[a * kWindows + b], 1.0f, values);
#pragma unroll
        for (int i = 0; i < kStep; ++i) {
#pragma unroll
          for (int j = 0; j < kStep; ++j) {
            const int row = a * kStep + i, column = b * kStep + j;
            if (row >= kSize || column >= kSize) continue;
            add_where(found[a * kWindows + b], row * kSize + column, values, sums[i * kStep + j]);
          }
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kStep; ++i) {
#pragma unroll
      for (int j = 0; j < kStep; ++j) {
        const int h = top + i, w = left + j;
        if (h < 0 || h >= g.src_height || w < 0 || w >= g.src_width) continue;
        const int at = ((h * g.src_width + w) * packs + group.pack) * N;
        store_pack<Unit, N>(diff_src + image * src_units + at, to_pack<Unit, N>(sums[i * kStep + j]));
      }
    }
  }
}

template <typename Unit, int N>
__global__ void __launch_bounds__(kPoolThreads)
    gather_of_any_maxima(const PoolGeometry g, const Unit* __restrict__ diff_dst,
                         const WindowCell<AnyWindow>* __restrict__ maxima, Unit* __restrict__ diff_src) {
  constexpr int kPackElements = N * kElements<Unit>;
  const int packs = g.channels / kPackElements;
  const PoolPlace place = pool_place(packs);
  if (place.row >= g.src_height || place.column >= g.src_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_packs = static_cast<std::int64_t>(g.dst_height) * g.dst_width * packs;
  const int own_at = ((place.row * g.src_width + place.column) * packs + place.pack) * N;
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    float sums[kPackElements] = {};
    for_each_window<AnyWindow>(g, place, [&](int row, int column, int row_inside, int column_inside) {
      const std::int64_t at = image * dst_packs + (row * g.dst_width + column) * packs + place.pack;
      float values[kPackElements] = {};
      add<Unit, N>(load_pack<Unit, N>(diff_dst + at * N), 1.0f, values);
      add_where(load_pack<WindowCell<AnyWindow>, kPackElements>(maxima + at * kPackElements),
                row_inside * g.kernel_width + column_inside, values, sums);
    });
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

constexpr std::int64_t kMostWindowCells = 65535;

std::int64_t maxima_bytes(const PoolGeometry& g, DataType type) {
  std::int64_t cell_bytes = 0;
  with_units_and_window(type, g, [&]<typename Window>(auto, auto, Window) { cell_bytes = sizeof(WindowCell<Window>); });
  return g.images * g.channels * g.dst_height * g.dst_width * cell_bytes;
}

// Two steps: find the position of each window's maximum within the window, then gather each cell's gradient. relu: src
// is the output of a relu, and diff_src the gradient of its input.
void launch_max(const CudaDevice& device, const PoolGeometry& g, DataType type, const Operands& operands, bool relu) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const int packs = g.channels / (N * kElements<Unit>);
        const auto* const diff_dst = operands.input<Unit>(0);
        auto* const diff_src = operands.output<Unit>();
        auto* const maxima = operands.scratch<WindowCell<Window>>();
        const PoolGrid windows = pool_grid(g.dst_height, g.dst_width, packs, g.images);
        find_maxima<Unit, N, Window>
            <<<windows.blocks, windows.threads, 0, device.stream()>>>(g, operands.input<Unit>(1), maxima, relu);
        if constexpr (Window::kFixed) {
          const auto groups = [](int cells, int pad) { return (cells + pad + Window::kStep - 1) / Window::kStep; };
          const PoolGrid grid =
              pool_grid(groups(g.src_height, g.pad_top), groups(g.src_width, g.pad_left), packs, g.images);
          gather_of_maxima<Unit, N, Window>
              <<<grid.blocks, grid.threads, 0, device.stream()>>>(g, diff_dst, maxima, diff_src);
        } else {
          const PoolGrid grid = pool_grid(g.src_height, g.src_width, packs, g.images);
          gather_of_any_maxima<Unit, N>
              <<<grid.blocks, grid.threads, 0, device.stream()>>>(g, diff_dst, maxima, diff_src);
        }
      });
  check(cudaGetLastError(), "the gradient of max pooling cannot be started");
}

void launch_average(const CudaDevice& device, const PoolGeometry& g, DataType type, const Operands& operands) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const PoolGrid grid = pool_grid(g.src_height, g.src_width, g.channels / (N * kElements<Unit>), g.images);
        gather_of_averages<Unit, N, Window>
            <<<grid.blocks, grid.threads, 0, device.stream()>>>(g, operands.input<Unit>(0), operands.output<Unit>());
      });
  check(cudaGetLastError(), "the gradient of average pooling cannot be started");
}

}  // namespace

KernelChoice make(const op::PoolBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const bool max = operation.kind == op::PoolKind::max;
  // src and dst of the forward pass keep their format; the gradient is brought to it.
  const Format format = as_it_comes(request.inputs[max ? 1 : 0]);
  const PoolGeometry geometry =
      geometry_of(operation.kind, operation.window, operation.src_shape, request.inputs[0].shape, format.layout);
  const bool relu = operation.activation == op::Activation::relu;
  const std::int64_t cells = operation.window.kernel[0] * operation.window.kernel[1];
  if (max && cells > kMostWindowCells) {
    bad_input("'{}': a window of {} cells, expected at most {} for the gradient of max pooling on a GPU",
              request.node.name, cells, kMostWindowCells);
  }
  const auto launch = [=, type = format.dtype, &device](const Operands& operands, const RunContext&) {
    max ? launch_max(device, geometry, type, operands, relu) : launch_average(device, geometry, type, operands);
  };
  KernelChoice choice = function_kernel(request, kImplementation, launch);
  choice.inputs.assign(request.inputs.size(), format);
  if (max) choice.scratch_bytes = maxima_bytes(geometry, format.dtype);
  choice.outputs = {format};
  return choice;
}

}  // namespace trireme::cuda
