#include "trireme/backend/cuda/pooling.cuh"

namespace trireme::cuda {
namespace {

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
      // Starts from NaN: the maximum of NaN and a value is the value.
      Pack<Unit, N> best = filled<Unit, N>(__int_as_float(0x7fffffff));
      for_each_cell<Window, Unit, N>(g, from, place, packs, [&](const Pack<Unit, N>& cell, bool, unsigned) {
        for (int k = 0; k < N; ++k) best.values[k] = max_of(best.values[k], cell.values[k]);
      });
      store_pack<Unit, N>(dst + image * dst_units + to, best);
    } else {
      float sums[N * kElements<Unit>] = {};
      for_each_cell<Window, Unit, N>(g, from, place, packs, [&](const Pack<Unit, N>& cell, bool inside, unsigned) {
        if (inside) add<Unit, N>(cell, 1.0f, sums);
      });
      const float weight = average_weight<Window>(g, place.row, place.column);
      for (float& sum : sums) sum *= weight;
      store_pack<Unit, N>(dst + image * dst_units + to, to_pack<Unit, N>(sums));
    }
  }
}

// For one window that is the whole image: one pack of channels of an image per thread.
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
void launch_pool(const CudaDevice& device, const PoolGeometry& g, DataType type, const Operands& operands) {
  with_units_and_window(
      type, g, [&]<typename Unit, int N, typename Window>(Unit, std::integral_constant<int, N>, Window) {
        const int packs = g.channels / (N * kElements<Unit>);
        const auto* const from = operands.input<Unit>(0);
        auto* const to = operands.output<Unit>();
        if (!kMax && is_whole_image(g)) {
          const auto blocks = static_cast<unsigned>((g.images * packs + kImageThreads - 1) / kImageThreads);
          average_image<Unit, N><<<blocks, kImageThreads, 0, device.stream()>>>(g, from, to);
        } else {
          const PoolGrid grid = pool_grid(g.dst_height, g.dst_width, packs, g.images);
          pool<Unit, N, Window, kMax><<<grid.blocks, grid.threads, 0, device.stream()>>>(g, from, to);
        }
      });
  check(cudaGetLastError(), "pooling cannot be started");
}

}  // namespace

KernelChoice make(const op::Pool& operation, const KernelRequest& request, CudaDevice& device) {
  const Format format = as_it_comes(request.inputs[0]);
  const PoolGeometry geometry = geometry_of(operation.kind, operation.window, request.inputs[0].shape,
                                            request.node.outputs[0].shape, format.layout);
  const auto launch = operation.kind == op::PoolKind::max ? launch_pool<true> : launch_pool<false>;
  KernelChoice choice =
      function_kernel(request, kImplementation,
                      [geometry, launch, type = format.dtype, &device](const Operands& operands, const RunContext&) {
                        launch(device, geometry, type, operands);
                      });
  choice.inputs = choice.outputs = {format};
  return choice;
}

}  // namespace trireme::cuda
