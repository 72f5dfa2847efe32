#include "trireme/backend/onednn/memory_layout.hpp"

#include <algorithm>

#include "trireme/base/error.hpp"

namespace trireme::onednn {

using dnnl::memory;

namespace {

std::vector<std::int64_t> block_sizes(std::size_t rank, const std::vector<Layout::Block>& blocks) {
  std::vector<std::int64_t> sizes(rank, 1);
  for (const auto& block : blocks) sizes[block.axis] *= block.size;
  return sizes;
}

Blocking dense_blocking(const memory::dims& dims, const Layout& layout) {
  const auto sizes = block_sizes(dims.size(), layout.blocks);
  Blocking result{dims, memory::dims(dims.size(), 0), layout.blocks};
  std::int64_t stride = 1;
  for (const auto& block : layout.blocks) stride *= block.size;
  for (auto axis = layout.order.rbegin(); axis != layout.order.rend(); ++axis) {
    const std::int64_t outer = (dims[*axis] + sizes[*axis] - 1) / sizes[*axis];
    result.padded_dims[*axis] = outer * sizes[*axis];
    result.strides[*axis] = stride;
    stride *= std::max<std::int64_t>(outer, 1);
  }
  return result;
}

// To the library a scalar is one element.
memory::dims dims_of(const Shape& shape) { return shape.rank() == 0 ? memory::dims{1} : memory::dims(shape.dims()); }

memory::data_type type_of(DataType type) {
  switch (type) {
    case DataType::i32:
      return memory::data_type::s32;
    case DataType::bf16:
      return memory::data_type::bf16;
    case DataType::f16:
      return memory::data_type::f16;
    case DataType::f32:
      break;
  }
  return memory::data_type::f32;
}

// Of axes with equal strides, those with several blocks are outside those with one; else their stride would be smaller.
std::vector<int> order_of(const Blocking& blocking) {
  const auto sizes = block_sizes(blocking.strides.size(), blocking.blocks);
  std::vector<int> order = Layout::plain(static_cast<int>(sizes.size())).order;
  const auto single = [&](int axis) { return blocking.padded_dims[axis] <= sizes[axis]; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (blocking.strides[a] != blocking.strides[b]) return blocking.strides[a] > blocking.strides[b];
    return !single(a) && single(b);
  });
  return order;
}

std::optional<Layout> to_layout(const memory::dims& dims, const Blocking& blocking,
                                const std::vector<const Layout*>& preferred) {
  for (const Layout* layout : preferred) {
    if (layout != nullptr && same_order(dense_blocking(dims, *layout), blocking)) return *layout;
  }
  Layout layout{order_of(blocking), blocking.blocks};
  if (!same_order(dense_blocking(dims, layout), blocking)) return std::nullopt;
  return layout;
}

}  // namespace

std::optional<Layout> wished(const KernelRequest& request) {
  if (request.output_wish.empty() || request.output_wish[0] == nullptr) return std::nullopt;
  return *request.output_wish[0];
}

memory::desc to_desc(const TensorDesc& tensor) {
  const memory::dims dims = dims_of(tensor.shape);
  const Layout& layout = tensor.shape.rank() == 0 ? Layout::plain(1) : tensor.layout;
  const auto desc = make_desc(type_of(tensor.dtype), dims, dense_blocking(dims, layout));
  if (!desc) fail(ErrorKind::failed, "oneDNN {} has no memory format '{}'", library_version(), layout.name());
  return *desc;
}

memory::desc to_desc(const Shape& shape, const Layout& layout, DataType type) {
  return to_desc(TensorDesc{type, shape, layout});
}

memory::desc any_desc(const Shape& shape, DataType type) {
  return {dims_of(shape), type_of(type), memory::format_tag::any};
}

std::optional<Layout> to_layout(const memory::desc& desc, const std::vector<const Layout*>& preferred) {
  const auto found = blocking(desc);
  if (!found) return std::nullopt;
  return to_layout(onednn::dims_of(desc), *found, preferred);
}

memory::desc any_grouped_desc(const Shape& weights, std::int64_t groups, DataType type) {
  return {{groups, weights[0] / groups, weights[1], weights[2], weights[3]}, type_of(type), memory::format_tag::any};
}

std::optional<memory::desc> to_grouped_desc(const Shape& weights, std::int64_t groups, const Layout& layout,
                                            DataType type) {
  const std::int64_t out = weights[0] / groups;
  const memory::dims dims{groups, out, weights[1], weights[2], weights[3]};
  const std::int64_t out_block = block_sizes(4, layout.blocks)[0];
  // Blocks of axis 0 are blocks of groups if a group has one output; otherwise they must not cross groups.
  const bool of_groups = out == 1;
  if (!of_groups && out % out_block != 0) return std::nullopt;
  Layout grouped;
  for (int axis : layout.order) {
    if (axis == 0) grouped.order.push_back(0);
    grouped.order.push_back(axis + 1);
  }
  for (const auto& block : layout.blocks)
    grouped.blocks.push_back({block.axis == 0 && of_groups ? 0 : block.axis + 1, block.size});
  return make_desc(type_of(type), dims, dense_blocking(dims, grouped));
}

std::optional<Layout> from_grouped_desc(const memory::desc& desc, const std::vector<const Layout*>& preferred) {
  const auto found = blocking(desc);
  if (!found) return std::nullopt;
  const memory::dims dims = onednn::dims_of(desc);
  const Shape weights{dims[0] * dims[1], dims[2], dims[3], dims[4]};
  for (const Layout* layout : preferred) {
    if (layout == nullptr) continue;
    const auto candidate = to_grouped_desc(weights, dims[0], *layout);
    if (candidate && same_order(*blocking(*candidate), *found)) return *layout;
  }
  Layout layout;
  const int joined = dims[1] == 1 ? 1 : 0;  // left out: the axis that has one element or is part of the other
  for (int axis : order_of(*found)) {
    if (axis != joined) layout.order.push_back(axis <= 1 ? 0 : axis - 1);
  }
  for (const auto& block : found->blocks) layout.blocks.push_back({block.axis <= 1 ? 0 : block.axis - 1, block.size});
  const auto back = to_grouped_desc(weights, dims[0], layout);
  if (!back || !same_order(*blocking(*back), *found)) return std::nullopt;
  return layout;
}

}  // namespace trireme::onednn
