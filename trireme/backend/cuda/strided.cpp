#include "trireme/backend/cuda/strided.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::cuda {

Strides axis_strides(const Shape& shape, const Layout& layout) {
  Strides strides(shape.rank());
  std::int64_t stride = 1;
  for (auto axis = layout.order.rbegin(); axis != layout.order.rend(); ++axis) {
    strides[*axis] = stride;
    stride *= shape[*axis];
  }
  return strides;
}

Strides broadcast_strides(const TensorDesc& from, const Shape& to) {
  const Strides own = axis_strides(from.shape, from.layout);
  Strides strides(to.rank(), 0);
  const int new_axes = to.rank() - from.shape.rank();
  for (int axis = 0; axis < from.shape.rank(); ++axis) {
    if (from.shape[axis] != 1) strides[new_axes + axis] = own[axis];
  }
  return strides;
}

// Granlund and Montgomery's round-up method: quotient = (high half of multiplier · dividend + dividend) >> shift. The
// sum stays in 32 bits because the dividend is below 2^31.
FastDivide::FastDivide(std::int64_t divisor_) : divisor(checked_positions(divisor_)) {
  while ((std::uint64_t{1} << shift) < divisor) ++shift;
  const std::uint64_t excess = (std::uint64_t{1} << shift) - divisor;
  multiplier = static_cast<std::uint32_t>((excess << 32) / divisor + 1);
}

std::uint32_t checked_positions(std::int64_t positions) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 31;
  if (positions >= kLimit) {
    bad_input("{} positions in one tensor, expected fewer than {}: use a smaller batch", positions, kLimit);
  }
  return static_cast<std::uint32_t>(positions);
}

Box::Box(const Shape& shape, const Layout& order, const std::vector<Strides>& tensors) {
  for (const int axis : order.order) {
    if (shape[axis] == 1) continue;
    Strides steps;
    for (const Strides& tensor : tensors) steps.push_back(tensor[axis]);
    const auto continues = [&](std::int64_t outer, std::int64_t inner) { return outer == inner * shape[axis]; };
    if (!extents_.empty() && std::ranges::equal(strides_.back(), steps, continues)) {
      extents_.back() *= shape[axis];
      strides_.back() = std::move(steps);
    } else {
      extents_.push_back(shape[axis]);
      strides_.push_back(std::move(steps));
    }
  }
  if (axes() > kMaxAxes)
    bad_input("a tensor of shape {} has too many axes, expected at most {}", to_string(shape), kMaxAxes);
}

std::int64_t Box::positions() const {
  std::int64_t positions = 1;
  for (const std::int64_t extent : extents_) positions *= extent;
  return positions;
}

bool Box::allows_packs(int width) const {
  if (axes() == 0) return width == 1;
  if (extents_.back() % width != 0) return false;
  for (std::size_t tensor = 0; tensor < strides_.back().size(); ++tensor) {
    const std::int64_t inner = strides_.back()[tensor];
    if (inner == 0) continue;
    const auto aligned = [&](const Strides& steps) { return steps[tensor] % width == 0; };
    if (inner != 1 || !std::all_of(strides_.begin(), strides_.end() - 1, aligned)) return false;
  }
  return true;
}

}  // namespace trireme::cuda
