#include "trireme/backend/cuda/check.hpp"
#include "trireme/backend/cuda/pooling.cuh"

namespace trireme::cuda {
namespace {

// visit(cell, inside) for each cell of a window. A cell outside the image comes as the nearest one inside, which is in
// the window too: all cells can be on their way before the first is looked at.
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
      visit(load_pack<Unit, N>(image + at * N), h == top + i && w == left + j);
    }
  }
}

template <typename Unit, int N, typename Window, bool kMax>
__global__ void __launch_bounds__(kPoolThreads)
    pool(const PoolGeometry g, const Unit* __restrict__ src, Unit* __restrict__ dst) {
  const int packs = g.channels / (N * kElements<Unit>);
  const PoolPlace place = pool_place(packs);
  if (place.row >= g.dst_height || place.column >= g.dst_width) return;
  const std::int64_t src_units = static_cast<std::int64_t>(g.src_height) * g.src_width * packs * N;
  const std::int64_t dst_units = static_cast<std::int64_t>(g.dst_height) * g.dst_width * packs * N;
  const int to = ((place.row * g.dst_width + place.column) * packs + place.pack) * N;
  for (std::int64_t image = blockIdx.z; image < g.images; image += gridDim.z) {
    const Unit* const from = src + image * src_units;
    if constexpr (kMax) {
      Pack<Unit, N> best = no_numbers<Unit, N>();
      for_each_cell<Window, Unit, N>(g, from, place, packs, [&](const Pack<Unit, N>& cell, bool) {
        for (int k = 0; k < N; ++k) best.values[k] = max_of(best.values[k], cell.values[k]);
      });
      store_pack<Unit, N>(dst + image * dst_units + to, best);
    } else {
      float sums[N * kElements<Unit>] = {};
      for_each_cell<Window, Unit, N>(g, from, place, packs, [&](const Pack<Unit, N>& cell, bool inside) {
        if (inside) add<Unit, N>(cell, 1.0f, sums);
      });
      const float weight = average_weight<Window>(g, place.row, place.column);
      for (float& sum : sums) sum *= weight;
      store_pack<Unit, N>(dst + image * dst_units + to, to_pack<Unit, N>(sums));
    }
  }
}

// One window that is the whole image: a thread takes a pack of channels of an image.
constexpr int kImageThreads = 64;

template <typename Unit, int N>
__global__ void __launch_bounds__(kImageThreads)
    average_image(const PoolGeometry g, const Unit* __restrict__ src, Unit* __restrict__ dst) {
  const int packs = g.channels / (N * kElements<Unit>);
  const std::int64_t index = static_cast<std::int64_t>(blockIdx.x) * kImageThreads + threadIdx.x;
  if (index >= g.images * packs) return;
  const std::int64_t image = index / packs;
  const int cells = g.src_height * g.src_width;
  const Unit* const from = src + (image * cells * packs + index - image * packs) * N;
  float sums[N * kElements<Unit>] = {};
#pragma unroll 8
  for (int i = 0; i < cells; ++i) {
    add<Unit, N>(load_pack<Unit, N>(from + static_cast<std::int64_t>(i) * packs * N), 1.0f, sums);
  }
  for (float& sum : sums) sum *= 1.0f / static_cast<float>(cells);
  store_pack<Unit, N>(dst + index * N, to_pack<Unit, N>(sums));
}

bool is_whole_image(const PoolGeometry& g) {
  return g.dst_height == 1 && g.dst_width == 1 && g.pad_top == 0 && g.pad_left == 0 &&
         g.kernel_height == g.src_height && g.kernel_width == g.src_width;
}

template <bool kMax>
void launch_pool(cudaStream_t stream, const PoolGeometry& g, DataType type, const void* src, void* dst) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const int packs = g.channels / (N * kElements<Unit>);
        const auto* const from = static_cast<const Unit*>(src);
        auto* const to = static_cast<Unit*>(dst);
        if (!kMax && is_whole_image(g)) {
          const auto blocks = static_cast<unsigned>((g.images * packs + kImageThreads - 1) / kImageThreads);
          average_image<Unit, N><<<blocks, kImageThreads, 0, stream>>>(g, from, to);
        } else {
          const PoolGrid grid = pool_grid(g.dst_height, g.dst_width, packs, g.images);
          pool<Unit, N, Window, kMax><<<grid.blocks, grid.threads, 0, stream>>>(g, from, to);
        }
      });
  check(cudaGetLastError(), "pooling cannot be started");
}

}  // namespace

void launch_max_pool(cudaStream_t stream, const PoolGeometry& geometry, DataType type, const void* src, void* dst) {
  launch_pool<true>(stream, geometry, type, src, dst);
}

void launch_average_pool(cudaStream_t stream, const PoolGeometry& geometry, DataType type, const void* src, void* dst) {
  launch_pool<false>(stream, geometry, type, src, dst);
}

}  // namespace trireme::cuda
