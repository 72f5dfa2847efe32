#include <limits>
#include <type_traits>

#include "trireme/backend/cuda/elements.cuh"
#include "trireme/backend/cuda/kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

// to[i] = from[i - shift] if inside from, else 0, for all i of `to`. Axes in memory order of `to`, outermost first.
struct BoxCopy {
  std::array<std::int64_t, 4> to_extents, from_extents, from_strides, shift;
};

// BoxCopy with indices as wide as needed. The innermost axis of `to` counts packs.
template <typename Index>
struct Box {
  Index packs;
  Index steps[4];
  std::int64_t from_strides[4];
  std::int64_t from_extents[4];
  std::int64_t shift[4];
};

// One pack of `to` per iteration. whole: packs of both tensors coincide, so each is either all there or all zero.
template <typename From, typename To, int Width, typename Index>
__global__ void __launch_bounds__(kThreads)
    copy_box(const Box<Index> box, const From* __restrict__ from, To* __restrict__ to, bool whole) {
  for (Index pack = blockIdx.x * static_cast<Index>(kThreads) + threadIdx.x; pack < box.packs;
       pack += static_cast<Index>(kThreads) * gridDim.x) {
    const Index row = pack / box.steps[3];
    const Index plane = row / box.steps[2];
    const Index block = plane / box.steps[1];
    const std::int64_t at[4] = {static_cast<std::int64_t>(block) - box.shift[0],
                                static_cast<std::int64_t>(plane - block * box.steps[1]) - box.shift[1],
                                static_cast<std::int64_t>(row - plane * box.steps[2]) - box.shift[2],
                                static_cast<std::int64_t>(pack - row * box.steps[3]) * Width - box.shift[3]};
    bool inside = true;
    std::int64_t offset = 0;
#pragma unroll
    for (int axis = 0; axis < 3; ++axis) {
      inside = inside && at[axis] >= 0 && at[axis] < box.from_extents[axis];
      offset += at[axis] * box.from_strides[axis];
    }
    Pack<To, Width> values;
    if constexpr (std::is_same_v<From, To> && Width > 1) {
      if (whole) {
        if (inside && at[3] >= 0 && at[3] < box.from_extents[3]) {
          values = load_pack<From, Width>(from + offset + at[3]);
        } else {
#pragma unroll
          for (int i = 0; i < Width; ++i) values.values[i] = from_float<To>(0);
        }
        store_pack<To, Width>(to + static_cast<std::int64_t>(pack) * Width, values);
        continue;
      }
    }
#pragma unroll
    for (int i = 0; i < Width; ++i) {
      const std::int64_t last = at[3] + i;
      const bool there = inside && last >= 0 && last < box.from_extents[3];
      values.values[i] = from_float<To>(there ? to_float(from[offset + last * box.from_strides[3]]) : 0.0f);
    }
    store_pack<To, Width>(to + static_cast<std::int64_t>(pack) * Width, values);
  }
}

template <typename From, typename To, int Width, typename Index>
void launch(const CudaDevice& device, const BoxCopy& copy, const From* from, To* to) {
  Box<Index> box{};
  std::int64_t packs = 1;
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const std::int64_t steps = axis == 3 ? copy.to_extents[axis] / Width : copy.to_extents[axis];
    box.steps[axis] = static_cast<Index>(steps);
    box.from_strides[axis] = copy.from_strides[axis];
    box.from_extents[axis] = copy.from_extents[axis];
    box.shift[axis] = copy.shift[axis];
    packs *= steps;
  }
  box.packs = static_cast<Index>(packs);
  bool whole = copy.from_strides[3] == 1 && copy.from_extents[3] % Width == 0 && copy.shift[3] % Width == 0;
  for (std::size_t axis = 0; axis < 3; ++axis) whole = whole && copy.from_strides[axis] % Width == 0;
  const int blocks = blocks_for(packs, kThreads, kBlocksPerMultiprocessor * device.multiprocessors());
  copy_box<From, To, Width, Index><<<blocks, kThreads, 0, device.stream()>>>(box, from, to, whole);
}

}  // namespace

CopyFunction box_copy(const TensorDesc& from, const TensorDesc& to, CudaDevice& device,
                      const std::array<std::int64_t, 4>& shift) {
  BoxCopy copy{};
  std::int64_t elements = 1;
  const Strides strides = axis_strides(from.shape, from.layout);
  for (std::size_t i = 0; i < 4; ++i) {
    const int axis = to.layout.order[i];
    copy.to_extents[i] = to.shape[axis];
    copy.from_extents[i] = from.shape[axis];
    copy.from_strides[i] = strides[axis];
    copy.shift[i] = shift[axis];
    elements *= to.shape[axis];
  }
  return [=, from_type = from.dtype, to_type = to.dtype, &device](const void* src, void* dst) {
    if (elements == 0) return;
    with_element(from_type, [&]<typename From>(From) {
      with_element(to_type, [&]<typename To>(To) {
        const auto* const source = static_cast<const From*>(src);
        auto* const target = static_cast<To*>(dst);
        const bool small = elements < std::numeric_limits<std::int32_t>::max() / 2;
        if (small && copy.to_extents[3] % kPack<To> == 0) {
          launch<From, To, kPack<To>, std::uint32_t>(device, copy, source, target);
        } else if (small) {
          launch<From, To, 1, std::uint32_t>(device, copy, source, target);
        } else {
          launch<From, To, 1, std::uint64_t>(device, copy, source, target);
        }
      });
    });
    check(cudaGetLastError(), "copying into a larger or smaller tensor");
  };
}

}  // namespace trireme::cuda
