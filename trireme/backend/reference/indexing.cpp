#include "trireme/backend/reference/indexing.hpp"

namespace trireme::reference {

Strides row_major_strides(const Shape& shape) {
  Strides strides(shape.rank());
  std::int64_t stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

Strides broadcast_strides(const Shape& from, const Shape& to) {
  const Strides own = row_major_strides(from);
  Strides strides(to.rank(), 0);
  const int new_axes = to.rank() - from.rank();
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (from[axis] != 1) strides[new_axes + axis] = own[axis];
  }
  return strides;
}

}  // namespace trireme::reference
