// Modules of parallel branches, concatenated over channels: the Inception family's modules as data.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "trireme/models/layers.hpp"

namespace trireme {

using Layer = std::variant<ConvolutionConfig, PoolConfig>;

// Consecutive layers, then optionally a fork: each of its layers takes their result, and the outputs are concatenated.
struct Branch {
  std::vector<Layer> layers;
  std::vector<Layer> fork;
};

// Short forms for tables of branches.
constexpr ConvolutionConfig conv(std::int64_t channels, op::Pair kernel = {1, 1}) {
  return {.channels = channels, .kernel = kernel};
}
constexpr ConvolutionConfig conv_valid(std::int64_t channels, op::Pair kernel, std::int64_t stride = 1) {
  return {.channels = channels, .kernel = kernel, .stride = stride, .padding = Padding::valid};
}
constexpr PoolConfig same_pool(op::PoolKind kind, std::int64_t kernel, std::int64_t stride = 1) {
  return {.kind = kind, .kernel = kernel, .stride = stride, .padding = Padding::same};
}
constexpr PoolConfig valid_pool(op::PoolKind kind, std::int64_t kernel, std::int64_t stride) {
  return {.kind = kind, .kernel = kernel, .stride = stride, .padding = Padding::valid};
}
Branch branch(std::vector<Layer> layers, std::vector<Layer> fork = {});

Tensor add_layers(LayerBuilder& builder, Tensor src, const std::vector<Layer>& layers);
// Layers are named "name/branch1/conv2/...".
Tensor add_module(LayerBuilder& builder, Tensor src, const std::string& name, const std::vector<Branch>& branches);

}  // namespace trireme
