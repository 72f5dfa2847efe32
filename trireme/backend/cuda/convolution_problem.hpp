// A convolution as cuDNN is asked for it, and the engines that cuDNN has for it under the rules of a precision. Made by
// the factories in convolution.cpp, which may ask for a problem with more padding or channels than the operation has.
#pragma once

#include "trireme/backend/cuda/cudnn_graph.hpp"

namespace trireme::cuda {

// What follows the sum of a convolution: + bias of the channel, + addend, ReLU.
struct After {
  bool bias = false;
  bool add = false;
  bool relu = false;
  bool any() const { return bias || add || relu; }
};

// Tensors of a convolution's graph by number. Those of a direction that writes gradients are the gradients.
enum class ConvolutionTensor : std::int64_t { src = 1, weights, dst, bias, addend, first_virtual };

struct ConvolutionProblem {
  ConvolutionDirection direction = ConvolutionDirection::forward;
  Shape src, weights, dst;
  op::Window window;
  Layout layout;  // of all three
  DataType type = DataType::f32;
  DataType weights_type = DataType::f32;
  After after = {};  // of the forward direction
};

std::shared_ptr<const OperationGraph> make_graph(const ConvolutionProblem& problem, cudnnHandle_t handle);

struct EngineRules {
  bool tensor_cores = true;  // no: sums of exact products of f32
  bool exact = false;        // none that round more than the direct sum does (Winograd, FFT)
  bool more = false;         // ask all heuristics
};

// Best first, as cuDNN's heuristics think, each once. Only engines that give the same bits in every run.
std::vector<EngineConfig> find_engines(const OperationGraph& graph, const EngineRules& rules);

}  // namespace trireme::cuda
