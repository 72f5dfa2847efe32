#include "trireme/models/branches.hpp"

#include <utility>

namespace trireme {
namespace {

Tensor add_layer(LayerBuilder& builder, Tensor src, const Layer& layer) {
  if (const auto* convolution = std::get_if<ConvolutionConfig>(&layer)) return builder.convolution(src, *convolution);
  return builder.pool(src, std::get<PoolConfig>(layer));
}

}  // namespace

Branch branch(std::vector<Layer> layers, std::vector<Layer> fork) { return {std::move(layers), std::move(fork)}; }

Tensor add_layers(LayerBuilder& builder, Tensor src, const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) src = add_layer(builder, src, layer);
  return src;
}

Tensor add_module(LayerBuilder& builder, Tensor src, const std::string& name, const std::vector<Branch>& branches) {
  const LayerBuilder::Scope module_scope(builder, name);
  std::vector<Tensor> results;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const LayerBuilder::Scope branch_scope(builder, "branch" + std::to_string(i + 1));
    const Tensor trunk = add_layers(builder, src, branches[i].layers);
    if (branches[i].fork.empty()) results.push_back(trunk);
    for (const Layer& layer : branches[i].fork) results.push_back(add_layer(builder, trunk, layer));
  }
  return concat(std::move(results), 1, "concat");
}

}  // namespace trireme
