// A convolution in one of the ways that lead to cuDNN: the problem as it is, or copied into a larger one that cuDNN has
// (better) engines for. Made by the factories in convolution.cpp.
#pragma once

#include "trireme/backend/cuda/convolution_problem.hpp"
#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

// What is to be computed.
struct ConvolutionWork {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  Shape src, weights, dst;
  op::Window window;
  std::int64_t groups = 1;
  Layout layout;                  // of src and dst, and of weights that are read
  DataType type = DataType::f32;  // of the same
  After after = {};
  Format diff_weights{Layout::plain(4)};  // as they are wanted
  bool diff_bias = false;
  bool image = false;  // src has few channels and can come in each image_layout
};

// How: each of these leads to another problem for cuDNN.
struct ConvolutionWay {
  std::string name;
  bool pad_src = false;                   // the window's padding becomes part of a copy of src
  std::int64_t src_channels = 0;          // with more, of zeros, in a copy of src and weights
  bool fused = false;                     // what follows the convolution is cuDNN's too
  DataType weights_type = DataType::f32;  // that cuDNN reads, or writes into a copy where another one is wanted
  int fold = 0;                           // src comes in image_layout(fold); 0: in the layout of the work
  bool wide = false;                      // folded, with taps of zeros that make the padding symmetric
};

// The format that src comes in, or goes.
Format src_format(const ConvolutionWork& work, const ConvolutionWay& way);

// The ways that are worth trying, likely ones first.
std::vector<ConvolutionWay> ways_of(const ConvolutionWork& work, bool tensor_cores);

ConvolutionProblem problem_of(const ConvolutionWork& work, const ConvolutionWay& way);

// kernel and scratch_bytes of the choice.
void set_kernel(KernelChoice& choice, const ConvolutionWork& work, const ConvolutionWay& way, ExecutionPlan plan,
                CudaDevice& device);

}  // namespace trireme::cuda
