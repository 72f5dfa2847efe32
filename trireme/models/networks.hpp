// The networks up to their last features; model.cpp names them and adds classifier and loss. Private to models/.
#pragma once

#include <array>

#include "trireme/models/layers.hpp"

namespace trireme::networks {

// Layers per stage.
using Four = std::array<int, 4>;
using Five = std::array<int, 5>;

Tensor trivial(LayerBuilder& layers, Tensor images);
Tensor lenet(LayerBuilder& layers, Tensor images);
Tensor mnist(LayerBuilder& layers, Tensor images);

Tensor alexnet(LayerBuilder& layers, Tensor images);
Tensor alexnet_owt(LayerBuilder& layers, Tensor images);
Tensor alexnet_cifar(LayerBuilder& layers, Tensor images);
Tensor overfeat(LayerBuilder& layers, Tensor images);
Tensor vgg(LayerBuilder& layers, Tensor images, const Five& depths);

Tensor googlenet(LayerBuilder& layers, Tensor images);
Tensor inception3(LayerBuilder& layers, Tensor images);
Tensor inception4(LayerBuilder& layers, Tensor images);

enum class ResnetVersion : std::uint8_t { v1, v1_5, v2 };
Tensor resnet(LayerBuilder& layers, Tensor images, const Four& depths, ResnetVersion version);
Tensor cifar_resnet(LayerBuilder& layers, Tensor images, int blocks_per_stage);
Tensor keras_resnet_v2(LayerBuilder& layers, Tensor images, int blocks_per_stage);
// cells: a multiple of 3, besides four that halve the image; filters: a multiple of 8.
Tensor amoebanet_d(LayerBuilder& layers, Tensor images, int cells, std::int64_t filters);

}  // namespace trireme::networks
