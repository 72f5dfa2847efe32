// Local response normalization. With channels last and common neighborhoods, a thread computes a pack of channels from
// that pack and the two beside it. Everything else is computed element by element.
#include <type_traits>

#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/formats.hpp"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/function_kernel.hpp"

namespace trireme::cuda {
namespace {

// A tensor as outer x channels x inner; with channels last, inner is 1.
struct LrnGeometry {
  std::int64_t outer = 1;
  std::int64_t channels = 1;
  std::int64_t inner = 1;
  std::int64_t size = 5;  // number of neighboring channels, odd
  float alpha_per_cell = 0;
  float beta = 0;
  float k = 1;

  __host__ __device__ std::int64_t elements() const { return outer * channels * inner; }
};

constexpr int kThreads = 256;
constexpr int kChannels = 8;  // of a pack

// scale^−beta, for scale > 0.
__device__ float power(float scale, float beta) { return exp2f(-beta * __log2f(scale)); }

__device__ std::int64_t thread_index() { return static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

// The channels of the previous pack, this pack and the next; zeros if there is none, which add nothing to any sum.
template <typename Element>
struct Neighbourhood {
  float values[3 * kChannels];

  __device__ Neighbourhood(const Element* pack, bool first, bool last) {
#pragma unroll
    for (int side = 0; side < 3; ++side) {
      const bool missing = (side == 0 && first) || (side == 2 && last);
      Pack<Element, kChannels> loaded = {};
      if (!missing) loaded = load_pack<Element, kChannels>(pack + (side - 1) * kChannels);
      for (int i = 0; i < kChannels; ++i) values[side * kChannels + i] = to_float(loaded.values[i]);
    }
  }
  // channel: relative to the pack's first.
  __device__ float operator[](int channel) const { return values[kChannels + channel]; }
  // kReach: neighbors on either side.
  template <int kReach>
  __device__ float scale(const LrnGeometry& g, int channel) const {
    float squares = 0;
    for (int c = channel - kReach; c <= channel + kReach; ++c) squares += (*this)[c] * (*this)[c];
    return g.k + g.alpha_per_cell * squares;
  }
};

template <typename Element, int kReach>
__global__ void __launch_bounds__(kThreads)
    lrn_packs(const LrnGeometry g, const Element* __restrict__ src, Element* __restrict__ dst) {
  const std::int64_t index = thread_index(), packs = g.channels / kChannels;
  if (index >= g.outer * packs) return;
  const std::int64_t pack = index % packs;
  const Neighbourhood<Element> cells(src + index * kChannels, pack == 0, pack == packs - 1);
  Pack<Element, kChannels> result;
#pragma unroll
  for (int i = 0; i < kChannels; ++i)
    result.values[i] = from_float<Element>(cells[i] * power(cells.template scale<kReach>(g, i), g.beta));
  store_pack<Element, kChannels>(dst + index * kChannels, result);
}

template <typename Element, int kReach>
__global__ void __launch_bounds__(kThreads)
    lrn_backward_packs(const LrnGeometry g, const Element* __restrict__ src, const Element* __restrict__ diff_dst,
                       Element* __restrict__ diff_src) {
  static_assert(2 * kReach <= kChannels, "the neighbours of neighbours are in the packs beside");
  const std::int64_t index = thread_index(), packs = g.channels / kChannels;
  if (index >= g.outer * packs) return;
  const std::int64_t pack = index % packs;
  const Neighbourhood<Element> cells(src + index * kChannels, pack == 0, pack == packs - 1);
  const Neighbourhood<Element> diffs(diff_dst + index * kChannels, pack == 0, pack == packs - 1);
  // What each channel and its neighbors pass back through their scales, and directly.
  float through_scale[kChannels + 2 * kReach], direct[kChannels];
#pragma unroll
  for (int c = -kReach; c < kChannels + kReach; ++c) {
    const float scale = cells.template scale<kReach>(g, c);
    const float own = diffs[c] * power(scale, g.beta);
    through_scale[c + kReach] = own * cells[c] / scale;
    if (c >= 0 && c < kChannels) direct[c] = own;
  }
  Pack<Element, kChannels> result;
#pragma unroll
  for (int i = 0; i < kChannels; ++i) {
    float sum = 0;
    for (int c = 0; c <= 2 * kReach; ++c) sum += through_scale[i + c];
    result.values[i] = from_float<Element>(direct[i] - 2 * g.alpha_per_cell * g.beta * cells[i] * sum);
  }
  store_pack<Element, kChannels>(diff_src + index * kChannels, result);
}

// The channels of one position, in any layout, with any number of neighbors.
template <typename Element>
struct Column {
  const LrnGeometry& g;
  std::int64_t base;  // of channel 0

  __device__ std::int64_t first(std::int64_t channel) const { return max(channel - g.size / 2, std::int64_t{0}); }
  __device__ std::int64_t end(std::int64_t channel) const { return min(channel + g.size / 2 + 1, g.channels); }
  __device__ std::int64_t at(std::int64_t channel) const { return base + channel * g.inner; }
  __device__ float scale(const Element* src, std::int64_t channel) const {
    float squares = 0;
    for (std::int64_t c = first(channel); c < end(channel); ++c) {
      const float value = to_float(src[at(c)]);
      squares += value * value;
    }
    return g.k + g.alpha_per_cell * squares;
  }
};

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    lrn_elements(const LrnGeometry g, const Element* __restrict__ src, Element* __restrict__ dst) {
  const std::int64_t index = thread_index();
  if (index >= g.elements()) return;
  const std::int64_t channel = index / g.inner % g.channels;
  const Column<Element> column{g, index - channel * g.inner};
  dst[index] = from_float<Element>(to_float(src[index]) * power(column.scale(src, channel), g.beta));
}

template <typename Element>
__global__ void __launch_bounds__(kThreads)
    lrn_backward_elements(const LrnGeometry g, const Element* __restrict__ src, const Element* __restrict__ diff_dst,
                          Element* __restrict__ diff_src) {
  const std::int64_t index = thread_index();
  if (index >= g.elements()) return;
  const std::int64_t channel = index / g.inner % g.channels;
  const Column<Element> column{g, index - channel * g.inner};
  float through_scales = 0, direct = 0;
  for (std::int64_t c = column.first(channel); c < column.end(channel); ++c) {
    const std::int64_t at = column.at(c);
    const float scale = column.scale(src, c);
    const float own = to_float(diff_dst[at]) * power(scale, g.beta);
    through_scales += own * to_float(src[at]) / scale;
    if (c == channel) direct = own;
  }
  const float value = to_float(src[index]);
  diff_src[index] = from_float<Element>(direct - 2 * g.alpha_per_cell * g.beta * value * through_scales);
}

unsigned blocks_of(std::int64_t items) { return static_cast<unsigned>((items + kThreads - 1) / kThreads); }

// function(kReach) if channels are contiguous and whole packs, for common sizes; function(0) otherwise.
template <typename Function>
void with_reach(const LrnGeometry& g, Function function) {
  const bool packs = g.inner == 1 && g.channels % kChannels == 0;
  if (packs && g.size == 5) return function(std::integral_constant<int, 2>{});
  if (packs && g.size == 9) return function(std::integral_constant<int, 4>{});
  function(std::integral_constant<int, 0>{});
}

template <typename Operation>
LrnGeometry geometry_of(const Operation& operation, const Shape& shape, const Layout& layout) {
  const std::int64_t image = shape[2] * shape[3];
  const bool plain = layout.is_plain();
  return {.outer = plain ? shape[0] : shape[0] * image,
          .channels = shape[1],
          .inner = plain ? image : 1,
          .size = operation.size,
          .alpha_per_cell = operation.alpha / static_cast<float>(operation.size),
          .beta = operation.beta,
          .k = operation.k};
}

// launch(geometry, operands, Element{}, std::integral_constant<int, kReach>{}).
template <typename Operation, typename Launch>
KernelChoice lrn_kernel(const Operation& operation, const KernelRequest& request, Launch launch, const char* what) {
  const Format format = as_it_comes(request.inputs[0]);
  const LrnGeometry g = geometry_of(operation, request.inputs[0].shape, format.layout);
  const auto run = [=, type = format.dtype](const Operands& operands, const RunContext&) {
    with_element(type, [&](auto element) { with_reach(g, [&](auto reach) { launch(g, operands, element, reach); }); });
    check(cudaGetLastError(), what);
  };
  KernelChoice choice = function_kernel(request, kImplementation, run);
  choice.inputs.assign(request.inputs.size(), format);
  choice.outputs = {format};
  return choice;
}

}  // namespace

KernelChoice make(const op::Lrn& operation, const KernelRequest& request, CudaDevice& device) {
  const auto launch = [&device]<typename Element, int kReach>(const LrnGeometry& g, const Operands& operands, Element,
                                                              std::integral_constant<int, kReach>) {
    const auto* const from = operands.input<Element>(0);
    auto* const to = operands.output<Element>();
    if constexpr (kReach > 0) {
      lrn_packs<Element, kReach><<<blocks_of(g.elements() / kChannels), kThreads, 0, device.stream()>>>(g, from, to);
    } else {
      lrn_elements<Element><<<blocks_of(g.elements()), kThreads, 0, device.stream()>>>(g, from, to);
    }
  };
  return lrn_kernel(operation, request, launch, "local response normalisation cannot be started");
}

KernelChoice make(const op::LrnBackward& operation, const KernelRequest& request, CudaDevice& device) {
  const auto launch = [&device]<typename Element, int kReach>(const LrnGeometry& g, const Operands& operands, Element,
                                                              std::integral_constant<int, kReach>) {
    const auto *const from = operands.input<Element>(0), *const diff = operands.input<Element>(1);
    auto* const to = operands.output<Element>();
    if constexpr (kReach > 0) {
      lrn_backward_packs<Element, kReach>
          <<<blocks_of(g.elements() / kChannels), kThreads, 0, device.stream()>>>(g, from, diff, to);
    } else {
      lrn_backward_elements<Element><<<blocks_of(g.elements()), kThreads, 0, device.stream()>>>(g, from, diff, to);
    }
  };
  return lrn_kernel(operation, request, launch, "the gradient of local response normalisation cannot be started");
}

}  // namespace trireme::cuda
