// Own convolution by Winograd's F(4x4, 3x3) for AVX-512. Transformed values stay in the cache, while the library's is
// bound by memory. convolution.cpp offers it to the tuner; it rounds more than the direct sum.
#pragma once

#include "trireme/backend/onednn/blocked_choice.hpp"

namespace trireme::onednn::winograd {

inline constexpr const char* kImplementation = "own_wino_4x3:avx512";

bool possible(const op::Window& window, std::int64_t groups, const OwnLayouts& layouts);

KernelChoice choice(const op::Convolution& operation, const KernelRequest& request, const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardData& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);
KernelChoice choice(const op::ConvolutionBackwardWeights& operation, const KernelRequest& request,
                    const OwnLayouts& layouts);

}  // namespace trireme::onednn::winograd
