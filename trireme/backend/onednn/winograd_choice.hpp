// The own Winograd convolution as kernels of the plan. Offered to the tuner by convolution.cpp.
#pragma once

#include <optional>
#include <vector>

#include "trireme/plan/backend.hpp"

namespace trireme::onednn {

// Layouts that the other kernels of a convolution have. Activations must be in these, so that the kernels compare;
// weights are taken in the first that is possible, which saves the plan a reorder.
struct WinogradLayouts {
  Layout src, dst;
  std::vector<Layout> weights;
};

// Nothing where the machine, the window or the layouts do not allow it.
std::optional<KernelChoice> winograd_choice(const op::Convolution& operation, const KernelRequest& request,
                                            const WinogradLayouts& layouts);
std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                            const WinogradLayouts& layouts);

std::optional<KernelChoice> winograd_choice(const op::ConvolutionBackwardWeights& operation,
                                            const KernelRequest& request, const WinogradLayouts& layouts);

}  // namespace trireme::onednn
