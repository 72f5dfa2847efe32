// Tensors in layouts without blocks for cuDNN and own kernels: loops over channels, copies. For host code.
#pragma once

#include <array>

#include "trireme/backend/cuda/box_copy_kernels.hpp"
#include "trireme/backend/cuda/channels_kernels.hpp"
#include "trireme/backend/cuda/strided.hpp"

namespace trireme::cuda {

// By axis: batch, channels, height, width of activations; out, in, height, width of weights.
using Extents4 = std::array<std::int64_t, 4>;

// Rank 2 or more, plain or channels last; channels are axis 1.
inline ChannelLoops channel_loops(const Shape& shape, const Layout& layout) {
  const std::int64_t rows = shape[0] * shape[1];
  const std::int64_t inner = rows == 0 ? 0 : shape.elements() / rows;
  const bool channels_last = layout.order.back() == 1;
  return channels_last ? ChannelLoops{.outer = shape[0] * inner, .channels = shape[1], .inner = 1}
                       : ChannelLoops{.outer = shape[0], .channels = shape[1], .inner = inner};
}

// shift: how far values move along each axis of the shape.
inline BoxCopy box_copy(const TensorDesc& from, const TensorDesc& to, const Extents4& shift) {
  BoxCopy copy{};
  copy.to_type = to.dtype;
  copy.from_type = from.dtype;
  const Strides strides = axis_strides(from.shape, from.layout);
  for (std::size_t i = 0; i < 4; ++i) {
    const int axis = to.layout.order[i];
    copy.to_extents[i] = to.shape[axis];
    copy.from_extents[i] = from.shape[axis];
    copy.from_strides[i] = strides[axis];
    copy.shift[i] = shift[axis];
  }
  return copy;
}

}  // namespace trireme::cuda
