#include <set>
#include <utility>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/graph/functions.hpp"

namespace trireme {
namespace {

// One pass of reverse-mode differentiation. Sums gradients as they arrive, so that at most one is kept per tensor.
class Backward {
 public:
  Backward(Graph& graph, Tensor loss, std::span<const Tensor> targets)
      : graph_(graph), loss_(loss), depends_(size_of_forward(loss)), gradients_(size_of_forward(loss)) {
    for (const Tensor& target : targets) targets_.emplace(target.node, target.output);
    for (NodeId id = 0; id <= loss.node; ++id) {
      const Node& node = graph.node(id);
      for (const Tensor& input : node.inputs) {
        if (needed(input)) depends_[index(id)] = true;
      }
      gradients_[index(id)].resize(node.outputs.size());
    }
  }

  void run() {
    accumulate(loss_, constant(graph_, 1.0f, "seed"));
    for (NodeId id = loss_.node; id >= 0; --id) {
      if (depends_[index(id)] && has_gradient(id)) differentiate(graph_.node(id));
    }
  }

  Tensor of(Tensor target) const {
    return target.node > loss_.node ? Tensor{} : gradients_[index(target.node)][target.output];
  }

 private:
  static std::size_t index(NodeId id) { return static_cast<std::size_t>(id); }
  static std::size_t size_of_forward(Tensor loss) { return index(loss.node) + 1; }

  bool needed(Tensor tensor) const {
    return depends_[index(tensor.node)] || targets_.contains({tensor.node, tensor.output});
  }

  bool has_gradient(NodeId id) const {
    for (const Tensor& gradient : gradients_[index(id)]) {
      if (gradient) return true;
    }
    return false;
  }

  void accumulate(Tensor tensor, Tensor gradient) {
    Tensor& sum = gradients_[index(tensor.node)][tensor.output];
    sum = sum ? binary(op::BinaryKind::add, sum, gradient, "accumulate") : gradient;
  }

  void differentiate(const Node& node) {
    const Graph::Scope scope(graph_, node.name);
    std::vector<Tensor> outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i)
      outputs.push_back(graph_.output(node.id, static_cast<int>(i)));
    std::vector<bool> wanted;
    for (const Tensor& input : node.inputs) wanted.push_back(needed(input));

    const std::vector<Tensor> result = apply_rule(node, outputs, wanted);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (wanted[i] && result[i]) accumulate(node.inputs[i], result[i]);
    }
  }

  std::vector<Tensor> apply_rule(const Node& node, const std::vector<Tensor>& outputs,
                                 const std::vector<bool>& wanted) {
    try {
      return gradient(node.op, {graph_, node.inputs, outputs, gradients_[index(node.id)], wanted});
    } catch (const Error& error) {
      throw Error(error.kind(),
                  fmt::format("gradient of node '{}' ({}): {}", node.name, name_of(node.op), error.what()));
    }
  }

  Graph& graph_;
  Tensor loss_;
  std::set<std::pair<NodeId, int>> targets_;
  std::vector<bool> depends_;  // per node: whether it is computed from some target
  std::vector<std::vector<Tensor>> gradients_;
};

void check(const Graph& graph, Tensor tensor, const char* what) {
  if (!tensor) bad_input("gradients: {} is an empty tensor", what);
  if (tensor.graph != &graph) bad_input("gradients: {} belongs to another graph", what);
}

}  // namespace

std::vector<Tensor> gradients(Graph& graph, Tensor loss, std::span<const Tensor> targets) {
  check(graph, loss, "the loss");
  for (const Tensor& target : targets) {
    check(graph, target, "a target");
    if (target.type().dtype != DataType::f32) {
      bad_input("gradients: target '{}' has elements of type {}, expected f32", graph.node(target).name,
                to_string(target.type().dtype));
    }
  }
  if (loss.type() != TensorType{DataType::f32, {}}) {
    bad_input("gradients: the loss '{}' has shape {}, expected a scalar (reduce_mean makes one)", graph.node(loss).name,
              to_string(loss.shape()));
  }

  const Graph::Scope scope(graph, "gradients");
  Backward backward(graph, loss, targets);
  backward.run();
  std::vector<Tensor> result;
  for (const Tensor& target : targets) {
    result.push_back(backward.of(target));
    if (!result.back()) {
      bad_input(
          "gradients: the loss '{}' does not depend on '{}' in a differentiable way; leave it out of the targets or "
          "make it part of the loss",
          graph.node(loss).name, graph.node(target).name);
    }
  }
  return result;
}

}  // namespace trireme
