// The dataflow graph of operations (nodes) and tensors (edges), checked while it is built; read by gradients() and the
// plan. Inputs exist before their node, so creation order is a topological order.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trireme/graph/operation.hpp"

namespace trireme {

struct Node {
  NodeId id = -1;
  std::string name;
  Operation op;
  std::vector<Tensor> inputs;
  std::vector<TensorType> outputs;

  template <typename Op>
  const Op* as() const {
    return std::get_if<Op>(&op);
  }
};

class Graph {
 public:
  Graph() = default;
  Graph(const Graph&) = delete;  // tensors point to their graph
  Graph& operator=(const Graph&) = delete;

  // Adds a node and returns its first output (for an update: a tensor that can only be fetched). An empty name becomes
  // the operation's; a suffix makes names unique. Error(bad_input) names the node, the shapes and what was expected.
  Tensor add(Operation op, std::vector<Tensor> inputs, std::string name = "");

  const Node& node(NodeId id) const { return nodes_[id]; }
  const Node& node(Tensor tensor) const { return node(tensor.node); }
  const std::deque<Node>& nodes() const { return nodes_; }
  Tensor output(NodeId id, int index = 0) { return {this, id, index}; }
  const std::vector<NodeId>& variables() const { return variables_; }  // in creation order
  std::vector<Tensor> trainable_variables();
  // Updates of a training step besides the optimizer's (running statistics of batch norm).
  std::vector<Tensor> side_updates;

  // Prefixes the names of nodes added during its lifetime: "stage1/block0/conv".
  class Scope {
   public:
    Scope(Graph& graph, const std::string& name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Graph& graph_;
    std::size_t outer_length_;
  };

  // Sets the device of variables added during its lifetime, like tf.device. Inner scopes and variables override parts.
  class DeviceScope {
   public:
    DeviceScope(Graph& graph, std::string_view device);
    ~DeviceScope();
    DeviceScope(const DeviceScope&) = delete;
    DeviceScope& operator=(const DeviceScope&) = delete;

   private:
    Graph& graph_;
    Device outer_;
  };

 private:
  std::string unique_name(std::string name);

  std::deque<Node> nodes_;  // a deque because references to nodes must stay valid
  std::vector<NodeId> variables_;
  std::unordered_map<std::string, int> name_counts_;
  std::string prefix_;
  Device device_;
};

Cost cost(const Node& node);
// By node: whether one of the tensors is computed from it.
std::vector<bool> needed_for(std::span<const Tensor> tensors, const Graph& graph);

// Adds backward nodes that compute d(loss)/d(target) for each target and returns them in order. The loss is a scalar.
// Error(bad_input) names a target that the loss does not depend on.
std::vector<Tensor> gradients(Graph& graph, Tensor loss, std::span<const Tensor> targets);

}  // namespace trireme
