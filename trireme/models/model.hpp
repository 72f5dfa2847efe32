// The networks by name: what there is, and how to build one into a graph. `trireme models`, `bench` and `train` start
// here.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/models/layers.hpp"

namespace trireme {

// A network as a value: what it takes, and how it is built. Those of this library are a table of these; one of one's
// own is made the same way (examples/custom_network.cpp).
struct Network {
  std::string name = {};
  std::string description = {};  // one line: the family and where it comes from
  std::int64_t image_size = 224;
  std::int64_t channels = 3;
  std::int64_t classes = 1001;
  std::int64_t batch_size = 32;  // per worker, if nobody says another
  // From images (batch x channels x size x size) to the features that the classifier takes: a fully connected layer to
  // the classes follows, and the loss. Called for training and for evaluation, with the batch of each.
  std::function<Tensor(LayerBuilder& layers, Tensor images)> build = {};
};

struct ModelOptions {
  std::int64_t batch_size = 32;
  int groups = 1;                // programs that take batch statistics together; see runtime/batch_split.hpp
  std::int64_t num_classes = 0;  // 0: the model's own
  bool training = true;          // false: running statistics, no dropout, no auxiliary head
  bool aux_head = false;         // for networks that have one: inception3
  float label_smoothing = 0;
  bool dropout = true;  // false: leave it out of training too, as some published variants do
};

// What is common to all networks once built. labels are i32, one per sample.
struct Model {
  Network info;       // classes as resolved
  Tensor images;      // placeholder: batch x channels x size x size
  Tensor labels;      // placeholder
  Tensor logits;      // batch x classes
  Tensor loss;        // scalar: mean cross-entropy (with the auxiliary head's share where there is one)
  Tensor top1, top5;  // scalars: share of the batch
};

// Makes a network known by its name, so that it can be trained, evaluated, exported and measured as the others are.
// Call it first in main(): the table has no lock. Error(bad_input) if it cannot be, or its name is taken.
void add_network(Network network);
// The same, but one that was added before under this name gives way.
void set_network(Network network);

// In the order in which they became known.
std::vector<Network> model_list();
// An unknown name is Error(bad_input) that suggests the nearest and lists all.
const Network& find_model(std::string_view name);
Model build_model(Graph& graph, std::string_view name, const ModelOptions& options);

struct ModelCounts {
  std::int64_t parameters = 0;  // trainable
  std::int64_t gradient_tensors = 0;
  double forward_macs = 0;  // per image, convolutions and fully connected layers
};
ModelCounts count(const Graph& graph, const Model& model);

}  // namespace trireme
