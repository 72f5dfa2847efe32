// A convolution by cuDNN, as it is or copied into a larger problem with (better) engines. Made by convolution.cpp.
#pragma once

#include "trireme/backend/cuda/convolution_problem.hpp"
#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

struct ConvolutionWork {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  Shape src, weights, dst;
  op::Window window;
  std::int64_t groups = 1;
  Layout layout;                  // of src and dst, and of weights if read
  DataType type = DataType::f32;  // of the same tensors
  After after = {};
  Format diff_weights{Layout::plain(4)};  // as requested
  bool diff_bias = false;
  bool image = false;  // src has few channels and can come in any image_layout
};

// Each way is a different problem for cuDNN.
struct ConvolutionWay {
  std::string name;
  bool pad_src = false;                   // the window's padding becomes part of a copy of src
  std::int64_t src_channels = 0;          // if more than src has: zeros in a copy of src and weights
  bool fused = false;                     // cuDNN also does what follows the convolution
  DataType weights_type = DataType::f32;  // that cuDNN reads or writes; copied if another is wanted
  int fold = 0;                           // src comes in image_layout(fold); 0: in the work's layout
  bool wide = false;                      // folded, with zero taps that make the padding symmetric
};

// The format of src, or of its gradient.
Format src_format(const ConvolutionWork& work, const ConvolutionWay& way);

// The ways worth trying, the most promising first.
std::vector<ConvolutionWay> ways_of(const ConvolutionWork& work, bool tensor_cores);

ConvolutionProblem problem_of(const ConvolutionWork& work, const ConvolutionWay& way);

void set_kernel(KernelChoice& choice, const ConvolutionWork& work, const ConvolutionWay& way, ExecutionPlan plan,
                CudaDevice& device);

}  // namespace trireme::cuda
