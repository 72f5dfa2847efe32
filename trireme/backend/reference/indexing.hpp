// Index arithmetic over row-major tensors, for the loops of the reference backend. One idea serves broadcasting,
// slicing, padding, concatenation and reduction: walk the positions of one shape in row-major order, and find each in
// another tensor by that tensor's strides.
#pragma once

#include <cstdint>
#include <vector>

#include "trireme/base/shape.hpp"

namespace trireme::reference {

using Strides = std::vector<std::int64_t>;

// Elements between neighbours along each axis.
Strides row_major_strides(const Shape& shape);

// Strides by which a tensor of shape `from` is read as if it had shape `to`: 0 along axes that are repeated.
Strides broadcast_strides(const Shape& from, const Shape& to);

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
