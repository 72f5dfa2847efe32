#include "trireme/plan/rewriter.hpp"

#include <algorithm>
#include <utility>

#include "trireme/base/error.hpp"

namespace trireme {
namespace {

// An update has no output but can be fetched: room for one handle.
std::size_t handles(const Node& node) { return std::max<std::size_t>(node.outputs.size(), 1); }

// An operation for inputs with another first extent. Only these hold shapes of their own.
Operation resized(const Node& node, const std::vector<Tensor>& inputs, const BatchSizes& batches) {
  Operation op = node.op;
  if (const auto batch = batches.find(node.id); batch != batches.end()) {
    std::get<op::Placeholder>(op).type.shape[0] = batch->second;
  }
  if (node.as<op::Binary>() != nullptr) {  // a batch of one would be broadcast to the graph's
    const Shape &a = node.inputs[0].shape(), &b = node.inputs[1].shape();
    const bool are_alike = a.rank() > 0 && a.rank() == b.rank() && a[0] == b[0];
    if (are_alike && inputs[0].shape()[0] != inputs[1].shape()[0]) {
      bad_input("node '{}' combines a batch with {} rows of its own: that fixes the batch size", node.name, a[0]);
    }
  }
  if (inputs.empty() || inputs[0].shape() == node.inputs[0].shape()) return op;
  const std::int64_t before = node.inputs[0].shape()[0], now = inputs[0].shape()[0];
  if (auto* const reshape = std::get_if<op::Reshape>(&op)) {
    if (reshape->shape.rank() == 0 || reshape->shape[0] % before != 0) {
      bad_input(
          "node '{}' reshapes a batch of {} to {}; to run with another batch size, each sample must keep its own rows",
          node.name, before, to_string(reshape->shape));
    }
    reshape->shape[0] = reshape->shape[0] / before * now;
  } else if (auto* const slice = std::get_if<op::Slice>(&op)) {
    if (slice->size[0] != before) {
      bad_input("node '{}' takes {} samples of a batch of {}, which fixes the batch size", node.name, slice->size[0],
                before);
    }
    slice->size[0] = now;
  } else if (auto* const broadcast = std::get_if<op::Broadcast>(&op)) {
    if (broadcast->shape.rank() == inputs[0].shape().rank() && broadcast->shape[0] == before) broadcast->shape[0] = now;
  }
  return op;
}

}  // namespace

PlanGraph prune(const Graph& graph, std::span<const Tensor> fetches, const BatchSizes& batches) {
  const std::vector<bool> needed = needed_for(fetches, graph);
  for (const Node& node : graph.nodes()) {
    if (!needed[node.id] || batches.empty()) continue;
    if (is_backward(node.op) || is_update(node.op)) {
      bad_input("training uses the batch size of its graph; '{}' cannot run with another one", node.name);
    }
  }
  PlanGraph result{std::make_unique<Graph>(), {}, {}};
  std::vector<NodeId> copy(graph.nodes().size(), -1);
  auto moved = [&](Tensor t) { return Tensor{result.graph.get(), copy[t.node], t.output}; };
  for (const Node& node : graph.nodes()) {
    if (!needed[node.id]) continue;
    std::vector<Tensor> inputs;
    for (const Tensor& input : node.inputs) inputs.push_back(moved(input));
    Operation op = batches.empty() ? node.op : resized(node, inputs, batches);
    const NodeId id = result.graph->add(std::move(op), std::move(inputs), node.name).node;
    copy[node.id] = id;
    if (node.as<op::Variable>() != nullptr || node.as<op::Placeholder>() != nullptr) result.origin[id] = node.id;
  }
  for (const Tensor& fetch : fetches) result.fetches.push_back(moved(fetch));
  return result;
}

Rewriter::Rewriter(const PlanGraph& from) : from_(from), to_{std::make_unique<Graph>(), {}, {}} {
  const auto& nodes = from.graph->nodes();
  readers_.resize(nodes.size());
  mapped_.resize(nodes.size());
  emitted_.resize(nodes.size(), false);
  for (const Node& node : nodes) {
    readers_[node.id].resize(handles(node));
    mapped_[node.id].resize(handles(node));
    for (const Tensor& input : node.inputs) {
      readers_[input.node][input.output].push_back(node.id);
    }
  }
  for (const Tensor& fetch : from.fetches) {
    readers_[fetch.node][fetch.output].push_back(-1);
  }
}

const std::vector<NodeId>& Rewriter::readers(Tensor old) const { return readers_[old.node][old.output]; }

const Node* Rewriter::only_reader(const Node& node) const {
  const auto& all = readers_[node.id][0];
  return all.size() == 1 && all[0] >= 0 ? &from().node(all[0]) : nullptr;
}

bool Rewriter::depends_on(Tensor tensor, NodeId node) const {
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> stack{tensor.node};
  while (!stack.empty()) {
    const NodeId id = stack.back();
    stack.pop_back();
    if (id == node) return true;
    if (id < node || !seen.insert(id).second) continue;  // inputs are older than their readers
    for (const Tensor& input : from().node(id).inputs) stack.push_back(input.node);
  }
  return false;
}

void Rewriter::replace(std::vector<NodeId> nodes, std::function<void()> builder) {
  auto shared = std::make_shared<std::function<void()>>(std::move(builder));
  for (NodeId node : nodes) builders_[node] = shared;
}

Tensor Rewriter::map(Tensor old) {
  Tensor& now = mapped_[old.node][old.output];
  if (!now) emit(old.node);
  return now;
}

std::vector<Tensor> Rewriter::map(std::span<const Tensor> old) {
  std::vector<Tensor> now;
  for (const Tensor& tensor : old) now.push_back(map(tensor));
  return now;
}

void Rewriter::set(NodeId old_node, int output, Tensor now) { mapped_[old_node][output] = now; }

void Rewriter::emit(NodeId id) {
  if (emitted_[id]) return;
  emitted_[id] = true;
  if (auto found = builders_.find(id); found != builders_.end()) {
    // One builder serves several nodes: the first use must not call it again.
    auto builder = std::exchange(*found->second, nullptr);
    if (builder) builder();
    return;
  }
  const Node& node = from().node(id);
  const NodeId now = to().add(node.op, map(node.inputs), node.name).node;
  for (std::size_t i = 0; i < handles(node); ++i) set(id, static_cast<int>(i), to().output(now, static_cast<int>(i)));
  if (auto origin = from_.origin.find(id); origin != from_.origin.end()) to_.origin[now] = origin->second;
}

PlanGraph Rewriter::finish() {
  for (const Node& node : from().nodes()) {
    // Claimed nodes appear where one of their results is first needed.
    if (!claimed(node.id)) emit(node.id);
  }
  to_.fetches = map(from_.fetches);
  // Removes what fusing has left without readers, if there is anything: this copies the graph.
  if (std::ranges::count(needed_for(to_.fetches, *to_.graph), false) == 0) return std::move(to_);
  PlanGraph pruned = prune(*to_.graph, to_.fetches);
  for (auto& [node, origin] : pruned.origin) origin = to_.origin.at(origin);
  return pruned;
}

}  // namespace trireme
