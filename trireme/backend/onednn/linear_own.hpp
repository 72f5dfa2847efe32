// Fully connected layers of small batches by the loops of linear_loops.hpp, as kernels that stand beside the library's.
// Made by linear.cpp; the tuner takes the faster.
#pragma once

#include <optional>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// How rows of src and weights lie in memory: the same order for both, axis 0 outermost.
struct LinearLayouts {
  Layout src, weights;
};

// Nothing where the loops do not apply: layouts of another form, rows that are no multiple of a vector, larger batches,
// other CPUs.
std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);

}  // namespace trireme::onednn
