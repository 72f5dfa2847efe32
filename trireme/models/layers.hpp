// Layers with variables (convolution with bias or batch norm, fully connected), pools and dropout, with the initial
// values and paddings of tf_cnn_benchmarks. All networks of models/ and custom networks use LayerBuilder.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "trireme/graph/functions.hpp"

namespace trireme {

enum class Padding : std::uint8_t {
  same,    // TensorFlow's SAME: out = ceil(in / stride), the odd cell after
  valid,   // none
  resnet,  // stride 1: as same; otherwise (kernel - 1) / 2 on both sides, whatever the input
};

// The window of a convolution or pool over this batch x channels x height x width.
op::Window make_window(op::Pair kernel, std::int64_t stride, Padding padding, const Shape& src);

struct BatchNormConfig {
  float decay = 0.9f;  // of the running statistics
  float epsilon = 1e-5f;
  bool gamma = true;
};

// A function of graph/functions.hpp such as relu6, or a user's own, of a tensor and a node name (empty here).
using Activation = Tensor (*)(Tensor src, std::string name);

struct ConvolutionConfig {
  std::int64_t channels = 0;
  op::Pair kernel{1, 1};  // height, width
  std::int64_t stride = 1;
  std::int64_t groups = 1;  // equal to channels: a depthwise convolution
  Padding padding = Padding::same;
  std::int64_t border = 0;  // cells on every side, in addition to padding
  bool relu = true;
  Activation activation = nullptr;  // instead of ReLU
  bool plain = false;               // neither bias nor batch norm
};

struct PoolConfig {
  op::PoolKind kind = op::PoolKind::max;
  std::int64_t kernel = 2;
  std::int64_t stride = 2;
  Padding padding = Padding::valid;
};

struct LayerOptions {
  bool training = true;   // false: running statistics in batch norm, no dropout
  bool dropout = true;    // false: dropout() adds nothing in training either
  bool aux_head = false;  // add a second classifier in training to networks that have one
  int groups = 1;         // programs that share batch statistics: running variances count the samples of all
};

class LayerBuilder {
 public:
  explicit LayerBuilder(Graph& graph, LayerOptions options = {});

  // From now on convolutions have batch norm; before, a bias.
  void use_batch_norm(BatchNormConfig config) { batch_norm_ = config; }

  // An empty name is numbered within the scope: conv1, conv2, ...; the layer's variables are "conv1/weights",
  // "conv1/bias", "conv1/gamma", "conv1/beta", "conv1/running_mean", "conv1/running_variance".
  Tensor convolution(Tensor src, const ConvolutionConfig& config, const std::string& name = "");
  Tensor pool(Tensor src, const PoolConfig& config);
  Tensor spatial_mean(Tensor src);  // batch x channels
  Tensor dropout(Tensor src, float rate = 0.5f);
  // With a bias. Accepts a convolution's output directly: the weights then have shape outputs x C x H x W.
  Tensor fully_connected(Tensor src, std::int64_t outputs, bool relu = true, const std::string& name = "");
  // On its own, as before a pre-activated convolution.
  Tensor batch_norm(Tensor src, const BatchNormConfig& config, const std::string& name = "");

  // Features of a second classifier, whose loss counts 0.4. Unless wanted, the layers leading to it are omitted.
  bool wants_auxiliary() const { return options_.aux_head; }
  void set_auxiliary(Tensor features) { auxiliary_ = features; }
  const std::optional<Tensor>& auxiliary() const { return auxiliary_; }

  // A Graph::Scope with its own layer numbering.
  class Scope {
   public:
    Scope(LayerBuilder& layers, const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    LayerBuilder& layers_;
    Graph::Scope graph_scope_;
    std::map<std::string, int> outer_counts_;
  };

 private:
  std::string layer_name(const std::string& name, const std::string& kind);
  Tensor normalize(Tensor src, const BatchNormConfig& config);

  Graph& graph_;
  LayerOptions options_;
  std::optional<BatchNormConfig> batch_norm_;
  std::optional<Tensor> auxiliary_;
  std::map<std::string, int> counts_;  // layers of each kind in the current scope
};

}  // namespace trireme
