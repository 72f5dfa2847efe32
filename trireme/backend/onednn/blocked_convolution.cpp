#include "trireme/backend/onednn/blocked_convolution.hpp"

#include <utility>

namespace trireme::onednn {
namespace {

// The axis that a block's rows index: 1 for ABcd16b16a, 0 for ABcd16a16b, nothing for other layouts.
std::optional<int> row_axis(const Layout& layout) {
  if (layout.order != Layout::plain(4).order || layout.blocks.size() != 2) return std::nullopt;
  const Layout::Block& rows = layout.blocks[0];
  const Layout::Block& columns = layout.blocks[1];
  if (rows.size != kLanes || columns.size != kLanes || rows.axis + columns.axis != 1) return std::nullopt;
  return rows.axis;
}

}  // namespace

Layout blocked_activations() { return {Layout::plain(4).order, {{.axis = 1, .size = kLanes}}}; }

Layout blocked_weights() {
  return {Layout::plain(4).order, {{.axis = 1, .size = kLanes}, {.axis = 0, .size = kLanes}}};
}

Images::Images(const Shape& shape)
    : count(shape[0]), blocks(ceil_div(shape[1], kLanes)), height(shape[2]), width(shape[3]) {}

std::optional<WeightsOrder> WeightsOrder::forward(const Shape& weights, const Layout& layout) {
  const auto axis = row_axis(layout);
  if (!axis) return std::nullopt;
  const std::int64_t block = weights[2] * weights[3] * kLanes * kLanes;
  return WeightsOrder{
      .inner_stride = block, .outer_stride = block * ceil_div(weights[1], kLanes), .rows_are_inner = *axis == 1};
}

std::optional<WeightsOrder> WeightsOrder::backward_data(const Shape& weights, const Layout& layout) {
  auto order = forward(weights, layout);
  if (!order) return std::nullopt;
  std::swap(order->inner_stride, order->outer_stride);
  order->rows_are_inner = !order->rows_are_inner;
  order->flipped = true;
  return order;
}

}  // namespace trireme::onednn
