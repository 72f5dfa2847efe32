// Graph-to-graph rewriting, the tool of the fusing passes. A pass says for some nodes what to build instead; everything
// else that the fetches need is copied in the order of creation. What a fused node needs is emitted before it.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme {

// A graph on its way through the passes, and how it hangs together with the user's.
struct PlanGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Tensor> fetches;
  std::unordered_map<NodeId, NodeId> origin;       // variables and placeholders: node here -> node of the user's graph
  std::unordered_map<NodeId, NodeId> copies = {};  // nodes that recompute() has added -> the node that they repeat
};

// Copies what the fetches need.
PlanGraph prune(const Graph& graph, std::span<const Tensor> fetches);

class Rewriter {
 public:
  explicit Rewriter(const PlanGraph& from);

  const Graph& from() const { return *from_.graph; }
  Graph& to() { return *to_.graph; }

  // Nodes that read this tensor of the old graph; a fetch counts as a reader that is no node (-1).
  const std::vector<NodeId>& readers(Tensor old) const;
  // The only reader of a node's first output, or null if there are several or it is fetched.
  const Node* only_reader(const Node& node) const;
  // Whether the value of one node is needed to compute the tensor.
  bool depends_on(Tensor tensor, NodeId node) const;

  // The builder is called once, when an output of one of these nodes is first needed, and must set() every output of
  // theirs that has readers left. A node can be claimed once; claimed() tells.
  void replace(std::vector<NodeId> nodes, std::function<void()> builder);
  bool claimed(NodeId node) const { return builders_.contains(node); }
  // For builders: the new tensor of an old one (emitted now if it is not there yet), and the other way round.
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
