// Convolutions of images with few channels, folded: where the window moves by two pixels, two by two pixels of src are
// one pixel of four times the channels, over which a window of half the size moves by one. Tensor cores have whole
// vectors of channels to multiply then, and fewer products are with the zeros that fill up the channels. Used by
// convolution_kernel.cpp.
#pragma once

#include <array>

#include "trireme/backend/cuda/convolution_kernel.hpp"

namespace trireme::cuda {

// The ways for a work whose src is an image. One of them folds nothing and only has its channels filled up.
std::vector<ConvolutionWay> folded_ways(const ConvolutionWork& work);

// src, as its memory in image_layout is seen by cuDNN.
Shape folded_src(const ConvolutionWork& work, const ConvolutionWay& way);

// The weights as cuDNN has them, seen as weights of the work: with taps of zeros around, in a layout that folds them.
struct FoldedWeights {
  TensorDesc desc;
  std::array<std::int64_t, 4> shift;  // of the work's weights in them, by axis
};
FoldedWeights folded_weights(const ConvolutionWork& work, const ConvolutionWay& way);

// Changes src, weights and window of a problem into those of the folded one.
void fold(const ConvolutionWork& work, const ConvolutionWay& way, ConvolutionProblem& problem);

}  // namespace trireme::cuda
