#include "trireme/models/model.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <mutex>

#include "trireme/base/error.hpp"
#include "trireme/base/nearest_name.hpp"
#include "trireme/base/parse.hpp"
#include "trireme/models/families.hpp"
#include "trireme/models/networks.hpp"

namespace trireme {
namespace {

using networks::ResnetVersion;

constexpr float kAuxiliaryLossWeight = 0.4f;
constexpr int kLargestImage = 1 << 14;

using Build = std::function<Tensor(LayerBuilder&, Tensor)>;

Build vgg(const networks::Five& depths) {
  return [depths](LayerBuilder& layers, Tensor images) { return networks::vgg(layers, images, depths); };
}

Build resnet(const networks::Four& depths, ResnetVersion version) {
  return [=](LayerBuilder& layers, Tensor images) { return networks::resnet(layers, images, depths, version); };
}

Build cifar_resnet(int blocks_per_stage) {
  return [=](LayerBuilder& layers, Tensor images) { return networks::cifar_resnet(layers, images, blocks_per_stage); };
}

constexpr networks::Four kResnet50{3, 4, 6, 3};
constexpr networks::Four kResnet101{3, 4, 23, 3};
constexpr networks::Four kResnet152{3, 8, 36, 3};

// The library's networks, then added ones. References stay valid.
std::deque<Network>& table() {
  using networks::Five;
  static std::deque<Network> all{
      // name, description, image size, channels, classes, batch size
      {"trivial", "two fully connected layers: almost no work, for testing a set-up", 227, 3, 1001, 32,
       networks::trivial},
      {"lenet", "wider LeNet-5, as in tf_cnn_benchmarks: 28x28, three channels", 28, 3, 1001, 32, networks::lenet},
      {"mnist", "deep MNIST of the CSCS report: two convolutions, one hidden layer", 28, 1, 10, 50, networks::mnist},
      {"alexnet", "AlexNet without groups and LRN, as in tf_cnn_benchmarks", 227, 3, 1001, 512, networks::alexnet},
      {"alexnet_owt", "AlexNet 'one weird trick', as used by convnet-benchmarks and CINECA", 224, 3, 1000, 128,
       networks::alexnet_owt},
      {"overfeat", "OverFeat, the fast variant", 231, 3, 1001, 32, networks::overfeat},
      {"vgg11", "VGG with 11 layers (A)", 224, 3, 1001, 64, vgg(Five{1, 1, 2, 2, 2})},
      {"vgg16", "VGG with 16 layers (D)", 224, 3, 1001, 64, vgg(Five{2, 2, 3, 3, 3})},
      {"vgg19", "VGG with 19 layers (E)", 224, 3, 1001, 64, vgg(Five{2, 2, 4, 4, 4})},
      {"googlenet", "GoogLeNet (Inception v1) without auxiliary heads", 224, 3, 1001, 32, networks::googlenet},
      {"inception3", "Inception v3; its auxiliary head is optional", 299, 3, 1001, 32, networks::inception3},
      {"inception4", "Inception v4", 299, 3, 1001, 32, networks::inception4},
      {"resnet50", "ResNet-50 v1: the stride on the first 1x1 of a bottleneck", 224, 3, 1001, 64,
       resnet(kResnet50, ResnetVersion::v1)},
      {"resnet50_v1.5", "ResNet-50 v1.5: the stride on the 3x3 of a bottleneck", 224, 3, 1001, 64,
       resnet(kResnet50, ResnetVersion::v1_5)},
      {"resnet50_v2", "ResNet-50 v2: pre-activation", 224, 3, 1001, 64, resnet(kResnet50, ResnetVersion::v2)},
      {"resnet101", "ResNet-101 v1", 224, 3, 1001, 32, resnet(kResnet101, ResnetVersion::v1)},
      {"resnet101_v2", "ResNet-101 v2: pre-activation", 224, 3, 1001, 32, resnet(kResnet101, ResnetVersion::v2)},
      {"resnet152", "ResNet-152 v1", 224, 3, 1001, 32, resnet(kResnet152, ResnetVersion::v1)},
      {"resnet152_v2", "ResNet-152 v2: pre-activation", 224, 3, 1001, 32, resnet(kResnet152, ResnetVersion::v2)},
      {"resnet20", "CIFAR-10 ResNet with 20 layers", 32, 3, 11, 128, cifar_resnet(3)},
      {"resnet32", "CIFAR-10 ResNet with 32 layers", 32, 3, 11, 128, cifar_resnet(5)},
      {"resnet44", "CIFAR-10 ResNet with 44 layers", 32, 3, 11, 128, cifar_resnet(7)},
      {"resnet56", "CIFAR-10 ResNet with 56 layers", 32, 3, 11, 128, cifar_resnet(9)},
      {"resnet110", "CIFAR-10 ResNet with 110 layers", 32, 3, 11, 128, cifar_resnet(18)},
      {"alexnet_cifar", "AlexNet for CIFAR-10, with LRN", 32, 3, 11, 128, networks::alexnet_cifar},
  };
  return all;
}

// The networks whose names have numbers are made when they are first asked for.
const Network* find(std::string_view name) {
  static std::deque<Network> made;
  static std::mutex mutex;
  const auto found = std::ranges::find(table(), name, &Network::name);
  if (found != table().end()) return &*found;
  std::optional<Network> network = networks::find_in_families(name);
  if (const std::size_t at = name.rfind('@'); at != std::string_view::npos) {
    const Network* const base = find(name.substr(0, at));
    const auto size = parse_number<int>(name.substr(at + 1));
    if (base == nullptr || !size || *size < 1 || *size > kLargestImage) return nullptr;
    network = *base;
    network->name = name;
    network->image_size = *size;
  }
  if (!network) return nullptr;
  const std::lock_guard lock(mutex);
  const auto before = std::ranges::find(made, name, &Network::name);
  return before != made.end() ? &*before : &made.emplace_back(*std::move(network));
}

// Number of the library's own networks in the table.
std::ptrdiff_t own_networks() {
  static const std::ptrdiff_t count = std::ssize(table());
  return count;
}

void check(const Network& network) {
  if (network.name.empty() || !network.build) bad_input("a network needs a name and a function that builds it");
  if (network.image_size < 1 || network.channels < 1 || network.classes < 2 || network.batch_size < 1) {
    bad_input(
        "network '{}' has image_size {}, channels {}, classes {} and batch_size {}; all must be at least 1, classes at "
        "least 2",
        network.name, network.image_size, network.channels, network.classes, network.batch_size);
  }
}

void check(const Network& info, const ModelOptions& options) {
  if (options.batch_size <= 0) {
    bad_input("model {}: the batch size must be at least 1, got {}", info.name, options.batch_size);
  }
  if (options.num_classes != 0 && options.num_classes < 2) {
    bad_input("model {}: the number of classes must be at least 2 (or 0 for the model's own, {}), got {}", info.name,
              info.classes, options.num_classes);
  }
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1)) {
    bad_input("model {}: label smoothing must be in [0, 1), got {}", info.name, options.label_smoothing);
  }
}

}  // namespace

void add_network(Network network) {
  own_networks();  // counted before others are added
  if (find(network.name) != nullptr) bad_input("there is already a network '{}'; choose another name", network.name);
  check(network);
  table().push_back(std::move(network));
}

void set_network(Network network) {
  const auto added = table().begin() + own_networks();
  const auto found = std::find_if(added, table().end(), [&](const Network& each) { return each.name == network.name; });
  if (found == table().end()) return add_network(std::move(network));
  check(network);
  *found = std::move(network);
}

std::vector<Network> model_list() { return {table().begin(), table().end()}; }

const Network& find_model(std::string_view name) {
  if (const Network* const found = find(name); found != nullptr) return *found;
  std::vector<std::string> names;
  for (const Network& network : table()) names.push_back(network.name);
  const std::string nearest = suggestion(name, names);
  for (const NetworkFamily& family : network_families()) names.emplace_back(family.names);
  bad_input("unknown model '{}'{} The models are: {}", name, nearest, fmt::join(names, ", "));
}

Model build_model(Graph& graph, std::string_view name, const ModelOptions& options) {
  const Network& network = find_model(name);
  check(network, options);

  Model model;
  model.info = network;
  if (options.num_classes != 0) model.info.classes = options.num_classes;
  const std::int64_t size = model.info.image_size;
  model.images = placeholder(graph, {options.batch_size, model.info.channels, size, size}, "images");
  model.labels = placeholder(graph, {options.batch_size}, "labels", DataType::i32);

  LayerBuilder layers(graph, {.training = options.training,
                              .dropout = options.dropout,
                              .aux_head = options.aux_head && options.training,
                              .groups = options.groups});
  const Tensor features = network.build(layers, model.images);
  if (options.aux_head && options.training && !layers.auxiliary()) {
    bad_input("model {} has no auxiliary head; of this library's models only inception3 has one", network.name);
  }
  model.logits = layers.fully_connected(features, model.info.classes, false, "logits");
  model.loss = softmax_cross_entropy(model.logits, model.labels, options.label_smoothing, "loss");
  if (layers.auxiliary()) {
    const LayerBuilder::Scope scope(layers, "auxiliary");
    const Tensor logits = layers.fully_connected(*layers.auxiliary(), model.info.classes, false, "logits");
    const Tensor loss = softmax_cross_entropy(logits, model.labels, options.label_smoothing, "loss");
    model.loss = binary(op::BinaryKind::add, model.loss, loss * kAuxiliaryLossWeight, "weighted_loss");
  }
  model.top1 = top_k_accuracy(model.logits, model.labels, 1, "top1");
  model.top5 = top_k_accuracy(model.logits, model.labels, std::min<std::int64_t>(5, model.info.classes), "top5");
  return model;
}

ModelCounts count(const Graph& graph, const Model& model) {
  ModelCounts counts;
  double flops = 0;
  for (const Node& node : graph.nodes()) {
    if (const auto* variable = node.as<op::Variable>(); variable != nullptr && variable->trainable) {
      counts.parameters += variable->shape.elements();
      ++counts.gradient_tensors;
    }
    if (node.as<op::Convolution>() != nullptr || node.as<op::FullyConnected>() != nullptr) {
      flops += cost(node).flops;
    }
  }
  counts.forward_macs = flops / 2 / static_cast<double>(model.images.shape()[0]);
  return counts;
}

}  // namespace trireme
