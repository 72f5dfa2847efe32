// Own fully connected kernels for small batches, for AVX-512 or AVX2. linear.cpp offers them to the tuner.
#pragma once

#include <optional>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// How rows of src and weights lie in memory: the same order for both, axis 0 outermost.
struct LinearLayouts {
  Layout src, weights;
};

// Nothing if not applicable: other layouts, rows that are not whole vectors, larger batches, other CPUs.
std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);

}  // namespace trireme::onednn
