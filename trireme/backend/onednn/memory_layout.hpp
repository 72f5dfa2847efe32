// Converts between the plan's layouts and oneDNN's memory descriptors, for all kernels that run oneDNN primitives.
#pragma once

#include <optional>
#include <vector>

#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// The layout wished for the first output.
std::optional<Layout> wished(const KernelRequest& request);

dnnl::memory::desc to_desc(const TensorDesc& tensor);
dnnl::memory::desc to_desc(const Shape& shape, const Layout& layout, DataType type = DataType::f32);
// The library chooses the order.
dnnl::memory::desc any_desc(const Shape& shape, DataType type = DataType::f32);

// Nothing if the plan cannot express the descriptor. A preferred layout that puts every element of this shape at the
// same place wins, to avoid reorders between equal orders.
std::optional<Layout> to_layout(const dnnl::memory::desc& desc, const std::vector<const Layout*>& preferred = {});

// Grouped weights have an axis more in oneDNN: groups x out/groups x in/groups x height x width. These convert if the
// memory is the same with four axes.
std::optional<dnnl::memory::desc> to_grouped_desc(const Shape& weights, std::int64_t groups, const Layout& layout,
                                                  DataType type = DataType::f32);
dnnl::memory::desc any_grouped_desc(const Shape& weights, std::int64_t groups, DataType type = DataType::f32);
std::optional<Layout> from_grouped_desc(const dnnl::memory::desc& desc,
                                        const std::vector<const Layout*>& preferred = {});

}  // namespace trireme::onednn
