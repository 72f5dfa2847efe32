// The dataflow graph: nodes are operations, edges are tensors. Made by models, examples and users; checked while it is
// being built; read by gradients() and by the plan. Nodes are only ever appended, and a node's inputs exist before it,
// so the order of creation is a topological order.
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
  // the operation's; names are made unique by a suffix. Throws Error(bad_input) naming the node, the shapes and what
  // was expected.
  Tensor add(Operation op, std::vector<Tensor> inputs, std::string name = "");

  const Node& node(NodeId id) const { return nodes_[id]; }
  const Node& node(Tensor tensor) const { return node(tensor.node); }
  const std::deque<Node>& nodes() const { return nodes_; }
  Tensor output(NodeId id, int index = 0) { return {this, id, index}; }
  // Variables in order of creation.
  const std::vector<NodeId>& variables() const { return variables_; }
  std::vector<Tensor> trainable_variables();
  // Updates that a training step runs besides the optimizer (running statistics of batch norm).
  std::vector<Tensor> side_updates;

  // Names of nodes added while a Scope lives get its prefix: "stage1/block0/conv".
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

  // Variables added while a DeviceScope lives get its device, as with tf.device. Scopes nest: what the inner one or the
  // variable itself leaves out is taken from the outer one.
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

  std::deque<Node> nodes_;  // deque: references to nodes stay valid while the graph grows
  std::vector<NodeId> variables_;
  std::unordered_map<std::string, int> name_counts_;
  std::string prefix_;
  Device device_;
};

Cost cost(const Node& node);
// By node: whether one of the tensors is computed from it.
std::vector<bool> needed_for(std::span<const Tensor> tensors, const Graph& graph);

// Adds the backward nodes that compute d(loss)/d(target) for each target and returns them in the same order. The loss
// is a scalar. A target that the loss does not depend on is an error that names it.
std::vector<Tensor> gradients(Graph& graph, Tensor loss, std::span<const Tensor> targets);

}  // namespace trireme
