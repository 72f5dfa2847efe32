// Makes kernels of the reference backend's loops, with helpers for these. Used by the factories of kernels.hpp.
#pragma once

#include "trireme/backend/function_kernel.hpp"

namespace trireme::reference {

template <typename Loop>
KernelChoice plain_loops(const KernelRequest& request, Loop loop) {
  return function_kernel(request, "plain loops", std::move(loop));
}

// For loops that read element i of the inputs, and no other, before writing element i: inputs may share dst's memory.
template <typename Loop>
KernelChoice elementwise_loops(const KernelRequest& request, Loop loop) {
  KernelChoice choice = plain_loops(request, std::move(loop));
  for (std::size_t i = 0; i < request.inputs.size(); ++i) {
    if (request.inputs[i].shape == request.node.outputs[0].shape && choice.inputs[i] == choice.outputs[0])
      choice.in_place.emplace_back(static_cast<int>(i), 0);
  }
  return choice;
}

inline double activate(double value, op::Activation activation) {
  return activation == op::Activation::relu && value < 0 ? 0 : value;
}

// Row-major index arithmetic: walk one shape in order and find each position in another tensor by that one's strides.
using Strides = std::vector<std::int64_t>;

// Elements between neighbors along each axis.
inline Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.rank());
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// Strides that read a tensor of shape `from` as if it had shape `to`: 0 along repeated axes.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides own = row_major_strides(from);
  Strides strides(to.rank(), 0);
  const int new_axes = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) strides[new_axes + axis] = own[axis];
  }
  return strides;
}

// Offset of a box's position-th element (row-major) from its first one, in a tensor with these strides.
inline std::int64_t strided_offset(std::int64_t position, const Shape& box, const Strides& strides) {
  std::int64_t offset = 0;
  for (int axis = box.rank() - 1; axis >= 0; --axis) {
    offset += position % box[axis] * strides[axis];
    position /= box[axis];
  }
  return offset;
}

// A tensor as batch x channels x inner, the product of all other axes.
struct ChannelView {
  std::int64_t batch, channels, inner;

  explicit ChannelView(const Shape& shape)
      : batch(shape[0]), channels(shape[1]), inner(batch * channels == 0 ? 0 : shape.elements() / (batch * channels)) {}
  std::int64_t offset(std::int64_t n, std::int64_t channel, std::int64_t i = 0) const {
    return (n * channels + channel) * inner + i;
  }
  std::int64_t per_channel() const { return batch * inner; }
};

}  // namespace trireme::reference
