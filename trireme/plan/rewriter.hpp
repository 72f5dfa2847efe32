// Graph-to-graph rewriting for the fusing passes. A pass says what to build instead of some nodes; everything else that
// the fetches need is copied in creation order. Inputs of a fused node are emitted before it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trireme/graph/graph.hpp"
#include "trireme/plan/compile_options.hpp"

namespace trireme {

// A graph between passes, and how its nodes relate to the user's graph.
struct PlanGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> fetches;
  std::unordered_map<NodeId, NodeId> origin;       // variables and placeholders: node here -> node of the user's graph
  std::unordered_map<NodeId, NodeId> copies = {};  // nodes that recompute() added -> the node that they repeat
};

// Copies what the fetches need, for the graph's batch sizes or others. Error(bad_input) if an operation is tied to the
// graph's batch size, as training is: a gradient of a mean is divided by it.
PlanGraph prune(const Graph& graph, std::span<const Tensor> fetches, const BatchSizes& batches = {});

class Rewriter {
 public:
  explicit Rewriter(const PlanGraph& from);

  const Graph& from() const { return *from_.graph; }
  Graph& to() { return *to_.graph; }

  // Nodes that read this tensor of the old graph; a fetch counts as reader -1.
  const std::vector<NodeId>& readers(Tensor old) const;
  // The only reader of a node's first output; null if it has several or is fetched.
  const Node* only_reader(const Node& node) const;
  bool depends_on(Tensor tensor, NodeId node) const;

  // Called once, when one of these nodes is first needed, to set() outputs with readers. A node can be claimed once.
  void replace(std::vector<NodeId> nodes, std::function<void()> builder);
  bool claimed(NodeId node) const { return builders_.contains(node); }
  // For builders: the new tensor for an old one (emitted now if needed), and how to set it.
  Tensor map(Tensor old);
  std::vector<Tensor> map(std::span<const Tensor> old);
  void set(NodeId old_node, int output, Tensor now);

  PlanGraph finish();

 private:
  void emit(NodeId node);

  const PlanGraph& from_;
  PlanGraph to_;
  std::vector<std::vector<std::vector<NodeId>>> readers_;  // [node][output]
  std::unordered_map<NodeId, std::shared_ptr<std::function<void()>>> builders_;
  std::vector<std::vector<Tensor>> mapped_;  // [node][output]
  std::vector<bool> emitted_;
};

}  // namespace trireme
