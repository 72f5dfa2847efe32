#include "trireme/backend/onednn/box_copy.hpp"

#include <cstddef>
#include <cstring>

namespace trireme::onednn {
namespace {

std::int64_t block_size(const Layout& layout, int axis) {
  std::int64_t size = 1;
  for (const auto& block : layout.blocks) {
    if (block.axis == axis) size *= block.size;
  }
  return size;
}

}  // namespace

PhysicalBox::PhysicalBox(const Shape& shape, const Layout& layout) {
  *this = *make(shape, layout, std::vector<std::int64_t>(static_cast<std::size_t>(shape.rank()), 0), shape.dims());
}

std::optional<PhysicalBox> PhysicalBox::make(const Shape& shape, const Layout& layout,
                                             const std::vector<std::int64_t>& begin,
                                             const std::vector<std::int64_t>& size) {
  PhysicalBox box;
  std::vector<std::int64_t> whole, first;
  for (int axis : layout.order) {
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t block = block_size(layout, axis);
    const bool ends_between = (begin[at] + size[at]) % block == 0 || begin[at] + size[at] == shape[axis];
    if (begin[at] % block != 0 || !ends_between) return std::nullopt;
    whole.push_back((shape[axis] + block - 1) / block);
    first.push_back(begin[at] / block);
    box.extents_.push_back((size[at] + block - 1) / block);
  }
  for (const auto& block : layout.blocks) {
    whole.push_back(block.size);
    first.push_back(0);
    box.extents_.push_back(block.size);
  }
  box.strides_.assign(whole.size(), 1);
  for (std::size_t i = whole.size(); i-- > 1;) box.strides_[i - 1] = box.strides_[i] * whole[i];
  for (std::size_t i = 0; i < whole.size(); ++i) box.first_ += first[i] * box.strides_[i];
  return box;
}

BoxCopy::BoxCopy(const PhysicalBox& from, const PhysicalBox& to, std::int64_t element_bytes)
    : extents_(from.extents()),
      from_strides_(from.strides()),
      to_strides_(to.strides()),
      from_first_(from.first()),
      to_first_(to.first()),
      element_bytes_(element_bytes) {
  while (!extents_.empty() && from_strides_.back() == run_ && to_strides_.back() == run_) {
    run_ *= extents_.back();
    extents_.pop_back();
    from_strides_.pop_back();
    to_strides_.pop_back();
  }
  for (std::int64_t extent : extents_) rows_ *= extent;
}

void BoxCopy::run(const void* src, void* dst) const {
  const auto* source = static_cast<const std::byte*>(src);
  auto* destination = static_cast<std::byte*>(dst);
#pragma omp for schedule(static) nowait
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::int64_t from = from_first_, to = to_first_, rest = row;
    for (std::size_t i = extents_.size(); i-- > 0;) {
      from += rest % extents_[i] * from_strides_[i];
      to += rest % extents_[i] * to_strides_[i];
      rest /= extents_[i];
    }
    std::memcpy(destination + to * element_bytes_, source + from * element_bytes_,
                static_cast<std::size_t>(run_ * element_bytes_));
  }
}

}  // namespace trireme::onednn
