// A convolution as cuDNN gets it, and cuDNN's engines for it. Made by convolution_kernel.cpp, perhaps with more padding
// or channels than the operation has; used by convolution.cpp.
#pragma once

#include "trireme/backend/cuda/cudnn_graph.hpp"

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

struct ConvolutionProblem {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  Shape src, weights, dst;
  op::Window window;
  Layout layout;  // of all three
  DataType type = DataType::f32;
  DataType weights_type = DataType::f32;
  After after = {};  // forward only
};

std::shared_ptr<const OperationGraph> make_graph(const ConvolutionProblem& problem, cudnnHandle_t handle);

struct EngineRules {
  bool tensor_cores = true;  // false: exact f32 products
  bool exact = false;        // no engines that round more than the direct sum (Winograd, FFT)
  bool more = false;         // ask all of cuDNN's heuristics
};

// Best first by cuDNN's heuristics, without duplicates. Only engines that give the same bits in every run.
std::vector<EngineConfig> find_engines(const OperationGraph& graph, const EngineRules& rules);

}  // namespace trireme::cuda
