// Own convolution by Winograd's F(4x4, 3x3) for AVX-512, as kernels of the plan: it works on blocks of tiles whose
// transformed values stay in the cache, where the library's is bound by memory. Offered to the tuner by convolution.cpp
// beside the library's kernels; rounds more than the direct sum does.
#pragma once

#include "trireme/backend/onednn/blocked_choice.hpp"

namespace trireme::onednn::winograd {

inline constexpr const char* kImplementation = "own_wino_4x3:avx512";

// Whether the machine, the window and the layouts allow it.
bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts);

KernelChoice choice(const op::Convolution& operation, const KernelRequest& request, const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);

}  // namespace trireme::onednn::winograd
