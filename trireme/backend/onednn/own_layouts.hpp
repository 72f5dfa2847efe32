// What the choices of our own convolutions share: the blocked layouts that they work in. Used by winograd_choice.cpp
// and pointwise_choice.cpp.
#pragma once

#include <utility>
#include <vector>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// Layouts that the other kernels of a convolution have. Activations must be in these, so that the kernels compare;
// weights are taken in the first that is possible, which saves the plan a reorder.
struct OwnLayouts {
  Layout src, dst;
  std::vector<Layout> weights;
};

inline Layout blocked_activations() { return {Layout::plain(4).order, {{.axis = 1, .size = 16}}}; }
inline Layout blocked_weights() { return {Layout::plain(4).order, {{.axis = 1, .size = 16}, {.axis = 0, .size = 16}}}; }

// A layout and the order of its blocks, of the first of the layouts that has one.
template <typename Order>
struct OrderedWeights {
  Layout layout;
  Order order;
};
template <typename OrderOf>
auto first_possible(const Shape& shape, std::vector<Layout> layouts, const OrderOf& order_of) {
  using Order = typename decltype(order_of(shape, layouts.front()))::value_type;
  layouts.push_back(blocked_weights());
  for (Layout& layout : layouts) {
    if (const auto order = order_of(shape, layout)) return OrderedWeights<Order>{std::move(layout), *order};
  }
  return OrderedWeights<Order>{};  // not reached: the last one is possible
}

}  // namespace trireme::onednn
