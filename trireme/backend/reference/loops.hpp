// The loops of the reference backend as kernels, and what they are made of. Used by the factories of kernels.hpp.
#pragma once

#include "trireme/backend/function_kernel.hpp"

namespace trireme::reference {

template <typename Loop>
KernelChoice plain_loops(const KernelRequest& request, Loop loop) {
  return function_kernel(request, "plain loops", std::move(loop));
}

// The same for a loop that reads element i of an input before it writes element i of the output, and no other element:
// each input of the output's shape may share its memory.
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

// Index arithmetic over row-major tensors. One idea serves broadcasting, slicing, padding, concatenation and reduction:
// walk the positions of one shape in row-major order, and find each in another tensor by that tensor's strides.
using Strides = std::vector<std::int64_t>;

// Elements between neighbours along each axis.
inline Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.rank());
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// Strides by which a tensor of shape `from` is read as if it had shape `to`: 0 along axes that are repeated.
inline Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides own = row_major_strides(from);
  Strides strides(to.rank(), 0);
  const int new_axes = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) strides[new_axes + axis] = own[axis];
  }
  return strides;
}

// Where the position-th element (row-major) of a box lies in a tensor with these strides, from the box's first element.
inline std::int64_t strided_offset(std::int64_t position, const Shape& box, const Strides& strides) {
  std::int64_t offset = 0;
  for (int axis = box.rank() - 1; axis >= 0; --axis) {
    offset += position % box[axis] * strides[axis];
    position /= box[axis];
  }
  return offset;
}

// A tensor seen as outer x channels x inner around axis 1: batch x channels x the product of the rest.
struct ChannelView {
  std::int64_t batch, channels, inner;

  explicit ChannelView(const Shape& shape)
      : batch(shape[0]), channels(shape[1]), inner(batch * channels == 0 ? 0 : shape.elements() / (batch * channels)) {}
  std::int64_t offset(std::int64_t n, std::int64_t channel, std::int64_t i = 0) const {
    return (n * channels + channel) * inner + i;
  }
  // Elements that share a channel.
  std::int64_t per_channel() const { return batch * inner; }
};

}  // namespace trireme::reference
