// Own kernels for fully connected layers of small batches, with AVX-512 or AVX2. Made by linear.cpp beside the
// library's; the tuner takes the faster.
#pragma once

#include <optional>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// How rows of src and weights lie in memory: the same order for both, axis 0 outermost.
struct LinearLayouts {
  Layout src, weights;
};

// Nothing if they do not apply: layouts of another form, rows that are not a multiple of a vector, larger batches,
// other CPUs.
std::optional<KernelChoice> own_linear(const op::FullyConnected& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardData& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);
std::optional<KernelChoice> own_linear(const op::FullyConnectedBackwardWeights& operation, const KernelRequest& request,
                                       const LinearLayouts& layouts);

}  // namespace trireme::onednn
