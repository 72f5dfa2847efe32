// Between the plan's layouts and oneDNN's memory descriptors, in both directions. Used by every kernel that runs a
// primitive of the library.
#pragma once

#include <optional>
#include <vector>

#include "trireme/backend/onednn/dnnl_api.hpp"
#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// The layout in which the first output is wished for.
std::optional<Layout> wished(const KernelRequest& request);

dnnl::memory::desc to_desc(const TensorDesc& tensor);
dnnl::memory::desc to_desc(const Shape& shape, const Layout& layout, DataType type = DataType::f32);
// The library chooses the order.
dnnl::memory::desc any_desc(const Shape& shape, DataType type = DataType::f32);

// The layout of a descriptor; nothing where the plan's form cannot express it. Where one of the preferred layouts puts
// every element of this shape at the same place, that one, so that no reorder is planned between equal orders.
std::optional<Layout> to_layout(const dnnl::memory::desc& desc, const std::vector<const Layout*>& preferred = {});

// Weights of a grouped convolution have an axis more in oneDNN: groups x out/groups x in/groups x height x width. The
// forms that are the same memory as four axes can go both ways.
std::optional<dnnl::memory::desc> to_grouped_desc(const Shape& weights, std::int64_t groups, const Layout& layout,
                                                  DataType type = DataType::f32);
dnnl::memory::desc any_grouped_desc(const Shape& weights, std::int64_t groups, DataType type = DataType::f32);
std::optional<Layout> from_grouped_desc(const dnnl::memory::desc& desc,
                                        const std::vector<const Layout*>& preferred = {});

}  // namespace trireme::onednn
