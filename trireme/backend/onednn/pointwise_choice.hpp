// The own 1x1 convolution as kernels of the plan. Offered to the tuner by convolution.cpp.
#pragma once

#include <optional>

#include "trireme/backend/onednn/blocked_choice.hpp"

namespace trireme::onednn {

// Nothing where the machine, the window or the layouts do not allow it.
std::optional<KernelChoice> pointwise_choice(const op::Convolution& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts);
std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                                             const OwnLayouts& layouts);

std::optional<KernelChoice> pointwise_choice(const op::ConvolutionBackwardWeights& operation,
                                             const KernelRequest& request, const OwnLayouts& layouts);

}  // namespace trireme::onednn
