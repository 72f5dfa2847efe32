// The networks by name, and how to build one into a graph. Used by `trireme models`, `bench` and `train`.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/models/layers.hpp"

namespace trireme {

// A network as a value, in the library's table or a user's own (examples/custom_network.cpp).
struct Network {
  std::string name = {};
  std::string description = {};  // one line: family and origin
  std::int64_t image_size = 224;
  std::int64_t channels = 3;
  std::int64_t classes = 1001;
  std::int64_t batch_size = 32;  // default, per worker
  // Maps images (batch x channels x size x size) to the classifier's features; a fully connected layer to the classes
  // and the loss follow. Called for training and for evaluation, with the batch of each.
  std::function<Tensor(LayerBuilder& layers, Tensor images)> build = {};
};

struct ModelOptions {
  std::int64_t batch_size = 32;
  int groups = 1;                // programs that share batch statistics; see runtime/batch_split.hpp
  std::int64_t num_classes = 0;  // 0: the model's own
  bool training = true;          // false: running statistics, no dropout, no auxiliary head
  bool aux_head = false;         // for networks that have one: inception3
  float label_smoothing = 0;
  bool dropout = true;  // false: none in training either, as in some published variants
};

// A network once built. labels are i32, one per sample.
struct Model {
  Network info;       // classes as resolved
  Tensor images;      // placeholder: batch x channels x size x size
  Tensor labels;      // placeholder
  Tensor logits;      // batch x classes
  Tensor loss;        // scalar: mean cross-entropy (plus the auxiliary head's share if there is one)
  Tensor top1, top5;  // scalars: share of the batch
};

// Registers a network by name for training, evaluation, export and measurement. Call it first in main(): the table has
// no lock. Error(bad_input) if it is invalid or its name is taken.
void add_network(Network network);
void set_network(Network network);  // replaces an earlier added one of this name

std::vector<Network> model_list();  // in order of registration; without families

struct NetworkFamily {
  std::string_view names, description;
};
std::span<const NetworkFamily> network_families();

const Network& find_model(std::string_view name);  // Error(bad_input) suggests the nearest and lists all
Model build_model(Graph& graph, std::string_view name, const ModelOptions& options);

struct ModelCounts {
  std::int64_t parameters = 0;  // trainable
  std::int64_t gradient_tensors = 0;
  double forward_macs = 0;  // per image, convolutions and fully connected layers
};
ModelCounts count(const Graph& graph, const Model& model);

}  // namespace trireme
