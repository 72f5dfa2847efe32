// A convolution by cuDNN, as it is or copied into a larger problem with (better) engines: the problems, and the kernel.
// Made by convolution.cpp, which finds the engines.
#pragma once

#include "trireme/backend/cuda/cudnn_graph.hpp"
#include "trireme/backend/cuda/device.hpp"

namespace trireme::cuda {

// What follows a convolution: + bias of the channel, + addend, ReLU.
struct After {
  bool bias = false;
  bool add = false;
  bool relu = false;
  bool any() const { return bias || add || relu; }
};

// IDs of the tensors in a convolution's graph; of their gradients if the direction writes these.
enum class ConvolutionTensor : std::int64_t { src = 1, weights, dst, bias, addend, first_virtual };

// A convolution as cuDNN gets it, perhaps with more padding or channels than the operation has.
struct ConvolutionProblem {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  Shape src, weights, dst;
  op::Window window;
  Layout layout;  // of all three
  DataType type = DataType::f32;
  DataType weights_type = DataType::f32;
  After after = {};  // forward only
};

// A convolution as the plan wants it.
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

// The ways worth trying, the most promising first.
std::vector<ConvolutionWay> ways_of(const ConvolutionWork& work, bool tensor_cores);

ConvolutionProblem problem_of(const ConvolutionWork& work, const ConvolutionWay& way);

// All but the name of the implementation.
KernelChoice make_choice(const ConvolutionWork& work, const ConvolutionWay& way, ExecutionPlan plan,
                         CudaDevice& device);

}  // namespace trireme::cuda
