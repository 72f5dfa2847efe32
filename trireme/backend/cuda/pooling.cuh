// Shared by the pooling kernels: units of work, windows, and which thread takes which position.
#pragma once

#include <algorithm>
#include <type_traits>

#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {

// Channels are innermost. A plain tensor counts as images of one channel each.
struct PoolGeometry {
  std::int64_t images = 0;
  int channels = 1;
  int src_height = 0, src_width = 0;
  int dst_height = 0, dst_width = 0;
  int kernel_height = 1, kernel_width = 1;
  int stride_height = 1, stride_width = 1;
  int pad_top = 0, pad_left = 0;
  bool divide_by_inside = false;  // averages divide by the cells inside the image, not the kernel size
};

inline PoolGeometry geometry_of(op::PoolKind kind, const op::Window& window, const Shape& src, const Shape& dst,
                                const Layout& layout) {
  const bool plain = layout.is_plain();
  return {.images = plain ? src[0] * src[1] : src[0],
          .channels = plain ? 1 : static_cast<int>(src[1]),
          .src_height = static_cast<int>(src[2]),
          .src_width = static_cast<int>(src[3]),
          .dst_height = static_cast<int>(dst[2]),
          .dst_width = static_cast<int>(dst[3]),
          .kernel_height = static_cast<int>(window.kernel[0]),
          .kernel_width = static_cast<int>(window.kernel[1]),
          .stride_height = static_cast<int>(window.stride[0]),
          .stride_width = static_cast<int>(window.stride[1]),
          .pad_top = static_cast<int>(window.pad_before[0]),
          .pad_left = static_cast<int>(window.pad_before[1]),
          .divide_by_inside = kind == op::PoolKind::average_inside};
}

// A unit is what one instruction compares: an element, or two of a narrow type.
template <typename Unit>
inline constexpr int kElements = std::is_same_v<Unit, Bf16Pair> || std::is_same_v<Unit, Fp16Pair> ? 2 : 1;

__device__ inline float max_of(float a, float b) { return fmaxf(a, b); }
template <typename Element>
__device__ inline Element max_of(Element a, Element b) {
  if constexpr (kElements<Element> == 2) {
    return __hmax2(a, b);
  } else {
    return __hmax(a, b);
  }
}

// All bits set in the elements of a that are greater.
__device__ inline unsigned greater_bits(float a, float b) { return a > b ? ~0u : 0u; }
template <typename Unit>
__device__ inline unsigned greater_bits(Unit a, Unit b) {
  if constexpr (kElements<Unit> == 2) {
    return __hgt2_mask(a, b);
  } else {
    return __hgt(a, b) ? ~0u : 0u;
  }
}

template <typename Unit>
__device__ inline void to_floats(Unit unit, float* values) {
  if constexpr (kElements<Unit> == 2) {
    const float2 two = to_float2(unit);
    values[0] = two.x;
    values[1] = two.y;
  } else {
    values[0] = to_float(unit);
  }
}

template <typename Unit>
__device__ inline Unit to_unit(const float* values) {
  if constexpr (kElements<Unit> == 2) {
    return from_float2<Unit>(values[0], values[1]);
  } else {
    return from_float<Unit>(values[0]);
  }
}

template <typename Unit>
__device__ inline Unit repeated(float value) {
  const float values[2] = {value, value};
  return to_unit<Unit>(values);
}

template <typename Unit, int N>
__device__ inline Pack<Unit, N> filled(float value) {
  Pack<Unit, N> pack;
  for (int i = 0; i < N; ++i) pack.values[i] = repeated<Unit>(value);
  return pack;
}

// sums[i] += weight · pack[i]
template <typename Unit, int N>
__device__ inline void add(const Pack<Unit, N>& pack, float weight, float* sums) {
  for (int i = 0; i < N; ++i) {
    float values[kElements<Unit>];
    to_floats(pack.values[i], values);
    for (int k = 0; k < kElements<Unit>; ++k) sums[i * kElements<Unit> + k] += weight * values[k];
  }
}

template <typename Unit, int N>
__device__ inline Pack<Unit, N> to_pack(const float* values) {
  Pack<Unit, N> pack;
  for (int i = 0; i < N; ++i) pack.values[i] = to_unit<Unit>(values + i * kElements<Unit>);
  return pack;
}

// The most common window sizes, so that loops over their cells are unrolled.
template <int kSize_, int kStep_>
struct FixedWindow {
  static constexpr bool kFixed = true;
  static constexpr int kSize = kSize_, kStep = kStep_;
  __device__ static int kernel_height(const PoolGeometry&) { return kSize; }
  __device__ static int kernel_width(const PoolGeometry&) { return kSize; }
  __device__ static int stride_height(const PoolGeometry&) { return kStep; }
  __device__ static int stride_width(const PoolGeometry&) { return kStep; }
};

struct AnyWindow {
  static constexpr bool kFixed = false;
  static constexpr int kSize = 0, kStep = 0;
  __device__ static int kernel_height(const PoolGeometry& g) { return g.kernel_height; }
  __device__ static int kernel_width(const PoolGeometry& g) { return g.kernel_width; }
  __device__ static int stride_height(const PoolGeometry& g) { return g.stride_height; }
  __device__ static int stride_width(const PoolGeometry& g) { return g.stride_width; }
};

// Cells of a window inside the image, along one axis.
__device__ inline int cells_inside(int begin, int kernel, int extent) {
  return min(begin + kernel, extent) - max(begin, 0);
}

// 1 / the divisor of the average at (row, column) of dst.
template <typename Window>
__device__ inline float average_weight(const PoolGeometry& g, int row, int column) {
  const int height = Window::kernel_height(g), width = Window::kernel_width(g);
  if (!g.divide_by_inside) return 1.0f / static_cast<float>(height * width);
  const int rows = cells_inside(row * Window::stride_height(g) - g.pad_top, height, g.src_height);
  const int columns = cells_inside(column * Window::stride_width(g) - g.pad_left, width, g.src_width);
  return 1.0f / static_cast<float>(rows * columns);
}

// A thread takes one pack of channels at one position, in every image that its block takes. A block has neighboring
// packs and columns of a few rows, whose windows overlap.
struct PoolPlace {
  int row, column, pack;
};

__device__ inline PoolPlace pool_place(int packs) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int column = x / packs;
  return {static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y), column, x - column * packs};
}

// visit(cell, inside, position in the window) for each cell of dst's window, in row order. A cell outside the image is
// replaced by the nearest one inside (also in the window) and its position: all loads can be issued before the first
// result is used, and of equal cells the first one inside still comes first.
template <typename Window, typename Unit, int N, typename Visit>
__device__ void for_each_cell(const PoolGeometry& g, const Unit* __restrict__ image, const PoolPlace& place, int packs,
                              Visit visit) {
  const int top = place.row * Window::stride_height(g) - g.pad_top;
  const int left = place.column * Window::stride_width(g) - g.pad_left;
#pragma unroll
  for (int i = 0; i < Window::kernel_height(g); ++i) {
    const int h = min(max(top + i, 0), g.src_height - 1);
#pragma unroll
    for (int j = 0; j < Window::kernel_width(g); ++j) {
      const int w = min(max(left + j, 0), g.src_width - 1);
      const int at = (h * g.src_width + w) * packs + place.pack;
      visit(load_pack<Unit, N>(image + at * N), h == top + i && w == left + j,
            static_cast<unsigned>((h - top) * Window::kernel_width(g) + w - left));
    }
  }
}

inline constexpr int kPoolThreads = 256;

struct PoolGrid {
  dim3 blocks, threads;
};

inline PoolGrid pool_grid(int height, int width, int packs, std::int64_t images) {
  constexpr int kRows = 4;
  const int rows = height >= kRows ? kRows : 1;
  const int columns = kPoolThreads / rows;
  const std::int64_t most = 65535;  // of the third dimension
  return {dim3(static_cast<unsigned>((width * packs + columns - 1) / columns),
               static_cast<unsigned>((height + rows - 1) / rows), static_cast<unsigned>(std::min(images, most))),
          dim3(static_cast<unsigned>(columns), static_cast<unsigned>(rows))};
}

// function(Unit{}, N, Window{}): units in packs of 16 bytes if the channels are whole packs, else single elements.
template <typename Function>
void with_units_and_window(DataType type, const PoolGeometry& g, Function function) {
  constexpr std::integral_constant<int, 4> kWhole;
  constexpr std::integral_constant<int, 1> kSingle;
  const auto is = [&g](int size, int step) {
    return g.kernel_height == size && g.kernel_width == size && g.stride_height == step && g.stride_width == step;
  };
  with_element(type, [&]<typename Element>(Element element) {
    if (g.channels % kPack<Element> != 0) return function(element, kSingle, AnyWindow{});
    using Unit = std::conditional_t<std::is_same_v<Element, float>, float, PairOf<Element>>;
    if (is(3, 2)) return function(Unit{}, kWhole, FixedWindow<3, 2>{});
    if (is(3, 1)) return function(Unit{}, kWhole, FixedWindow<3, 1>{});
    if (is(2, 2)) return function(Unit{}, kWhole, FixedWindow<2, 2>{});
    function(Unit{}, kWhole, AnyWindow{});
  });
}

}  // namespace trireme::cuda
