#include "trireme/plan/layout.hpp"

#include <cstring>
#include <numeric>

#include "trireme/base/bfloat16.hpp"
#include "trireme/base/float16.hpp"

namespace trireme {
namespace {

// Product of the inner blocks of each axis.
std::vector<std::int64_t> block_sizes(const Layout& layout) {
  std::vector<std::int64_t> sizes(layout.order.size(), 1);
  for (const auto& block : layout.blocks) sizes[block.axis] *= block.size;
  return sizes;
}

std::int64_t blocks_along(std::int64_t extent, std::int64_t block) { return (extent + block - 1) / block; }

// In parallel for each row along the last axis: body(plain position, offset of the first element, offsets of the axis).
template <typename Body>
void for_each_row(const TensorDesc& desc, Body body) {
  const auto offsets = axis_offsets(desc);
  const int rank = desc.shape.rank();
  const std::int64_t row_length = desc.shape[rank - 1];
  const std::int64_t rows = row_length == 0 ? 0 : desc.shape.elements() / row_length;
#pragma omp parallel for schedule(static) if (rows * row_length > 65536)
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = 0;
    std::int64_t rest = row;
    for (int axis = rank - 2; axis >= 0; --axis) {
      offset += offsets[axis][rest % desc.shape[axis]];
      rest /= desc.shape[axis];
    }
    body(row * row_length, offset, offsets.back());
  }
}

template <typename Plain, typename Packed>
void pack_as(const TensorDesc& desc, const Plain* from, Packed* to) {
  if (desc.shape.rank() == 0) {
    *to = static_cast<Packed>(*from);
    return;
  }
  if (desc.layout.elements(desc.shape) != desc.shape.elements()) std::memset(static_cast<void*>(to), 0, desc.bytes());
  for_each_row(desc, [&](std::int64_t position, std::int64_t base, const std::vector<std::int64_t>& columns) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      to[base + columns[i]] = static_cast<Packed>(from[position + static_cast<std::int64_t>(i)]);
  });
}

template <typename Packed, typename Plain>
void unpack_as(const TensorDesc& desc, const Packed* from, Plain* to) {
  if (desc.shape.rank() == 0) {
    *to = *from;
    return;
  }
  for_each_row(desc, [&](std::int64_t position, std::int64_t base, const std::vector<std::int64_t>& columns) {
    for (std::size_t i = 0; i < columns.size(); ++i)
      to[position + static_cast<std::int64_t>(i)] = from[base + columns[i]];
  });
}

}  // namespace

Layout Layout::plain(int rank) {
  Layout layout;
  layout.order.resize(rank);
  std::iota(layout.order.begin(), layout.order.end(), 0);
  return layout;
}

Layout Layout::channels_last(int rank) {
  Layout layout = plain(rank);
  if (rank < 3) return layout;
  layout.order.erase(layout.order.begin() + 1);
  layout.order.push_back(1);
  return layout;
}

bool Layout::is_plain() const { return *this == plain(static_cast<int>(order.size())); }

std::int64_t Layout::elements(const Shape& shape) const {
  const auto sizes = block_sizes(*this);
  std::int64_t n = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const std::int64_t block = sizes[axis];
    n *= blocks_along(shape[axis], block) * block;
  }
  return n;
}

std::string Layout::name() const {
  if (order.empty()) return "scalar";
  const auto sizes = block_sizes(*this);
  std::string text;
  for (int axis : order) {
    const bool blocked = sizes[axis] > 1;
    text += static_cast<char>((blocked ? 'A' : 'a') + axis);
  }
  for (const auto& block : blocks) text += std::to_string(block.size) + static_cast<char>('a' + block.axis);
  return text;
}

std::string Format::name() const {
  std::string text = layout.name();
  if (dtype != DataType::f32) text.append(1, ':').append(to_string(dtype));
  return text;
}

std::vector<std::vector<std::int64_t>> axis_offsets(const TensorDesc& desc) {
  const auto& layout = desc.layout;
  const auto sizes = block_sizes(layout);
  std::vector<std::vector<std::int64_t>> offsets(desc.shape.rank());
  for (int axis = 0; axis < desc.shape.rank(); ++axis) {
    offsets[axis].assign(desc.shape[axis], 0);
  }
  // From the innermost block outwards: each takes the lowest part of its axis's remaining index.
  std::int64_t stride = 1;
  std::vector<std::int64_t> divisor(sizes.size(), 1);
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
    const auto axis = static_cast<std::size_t>(block->axis);
    for (std::size_t i = 0; i < offsets[axis].size(); ++i) {
      offsets[axis][i] += static_cast<std::int64_t>(i) / divisor[axis] % block->size * stride;
    }
    divisor[axis] *= block->size;
    stride *= block->size;
  }
  for (auto it = layout.order.rbegin(); it != layout.order.rend(); ++it) {
    const auto axis = static_cast<std::size_t>(*it);
    for (std::size_t i = 0; i < offsets[axis].size(); ++i)
      offsets[axis][i] += static_cast<std::int64_t>(i) / sizes[axis] * stride;
    stride *= blocks_along(desc.shape[*it], sizes[axis]);
  }
  return offsets;
}

void pack(const TensorDesc& desc, const void* plain, void* packed) {
  if (desc.dtype == DataType::bf16) {
    pack_as(desc, static_cast<const float*>(plain), static_cast<BFloat16*>(packed));
  } else if (desc.dtype == DataType::f16) {
    pack_as(desc, static_cast<const float*>(plain), static_cast<Float16*>(packed));
  } else {
    pack_as(desc, static_cast<const std::uint32_t*>(plain), static_cast<std::uint32_t*>(packed));
  }
}

void unpack(const TensorDesc& desc, const void* packed, void* plain) {
  if (desc.dtype == DataType::bf16) {
    unpack_as(desc, static_cast<const BFloat16*>(packed), static_cast<float*>(plain));
  } else if (desc.dtype == DataType::f16) {
    unpack_as(desc, static_cast<const Float16*>(packed), static_cast<float*>(plain));
  } else {
    unpack_as(desc, static_cast<const std::uint32_t*>(packed), static_cast<std::uint32_t*>(plain));
  }
}

}  // namespace trireme
