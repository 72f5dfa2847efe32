#include <algorithm>
#include <map>
#include <optional>

#include "trireme/graph/functions.hpp"
#include "trireme/plan/passes.hpp"

namespace trireme {
namespace {

bool is_relu(const Node* node) {
  const auto* unary = node == nullptr ? nullptr : node->as<op::Unary>();
  return unary != nullptr && unary->kind == op::UnaryKind::relu;
}

// A sum of two tensors of the result's shape: no broadcasting, nothing fused yet.
bool is_plain_sum(const Node& node) {
  const auto* sum = node.as<op::Binary>();
  return sum != nullptr && sum->kind == op::BinaryKind::add && sum->activation == op::Activation::none &&
         node.inputs[0].shape() == node.inputs[1].shape();
}

// The operation with the given change; nullopt if it has no such fused form (left).
template <typename Change>
std::optional<Operation> with(const Operation& operation, Change change) {
  Operation copy = operation;
  const bool known = std::visit([&](auto& o) { return change(o); }, copy);
  return known ? std::optional(copy) : std::nullopt;
}

std::optional<Operation> with_relu(const Operation& operation) {
  return with(operation, [](auto& o) {
    using Op = std::decay_t<decltype(o)>;
    if constexpr (std::is_same_v<Op, op::Binary>) {
      if (o.kind != op::BinaryKind::add) return false;
    }
    // Backward operations use this member differently.
    constexpr bool kForward = !std::is_same_v<Op, op::BatchNormBackward> && !std::is_same_v<Op, op::PoolBackward>;
    if constexpr (kForward && requires { o.activation; }) {
      if (o.activation != op::Activation::none) return false;
      o.activation = op::Activation::relu;
      return true;
    } else {
      return false;
    }
  });
}

std::optional<Operation> with_sum(const Operation& operation) {
  return with(operation, [](auto& o) {
    using Op = std::decay_t<decltype(o)>;
    constexpr bool kForward = !std::is_same_v<Op, op::BatchNormBackward>;
    if constexpr (kForward && requires {
                    o.add;
                    o.activation;
                  }) {
      if (o.add || o.activation != op::Activation::none) return false;
      return o.add = true;
    } else {
      return false;
    }
  });
}

// Builds `fused` of inputs of the old graph in place of node and another, which it absorbs, or of node alone. The
// outputs keep their positions; the absorbed one's output is output `absorbed_is`, if any.
void replace_pair(Rewriter& rewriter, const Node& node, const Node& absorbed, int absorbed_is, Operation fused,
                  std::vector<Tensor> inputs) {
  rewriter.replace({node.id, absorbed.id},
                   [&rewriter, &node, &absorbed, absorbed_is, fused = std::move(fused), inputs = std::move(inputs)] {
                     const NodeId now = rewriter.to().add(fused, rewriter.map(inputs), node.name).node;
                     for (int i = 0; i < std::ssize(node.outputs); ++i)
                       rewriter.set(node.id, i, rewriter.to().output(now, i));
                     if (absorbed_is >= 0) rewriter.set(absorbed.id, 0, rewriter.to().output(now, absorbed_is));
                   });
}

std::vector<Tensor> joined(std::span<const Tensor> first, std::span<const Tensor> second,
                           std::span<const Tensor> third = {}) {
  std::vector<Tensor> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  all.insert(all.end(), third.begin(), third.end());
  return all;
}

// One update in place of several; the first `shared` inputs are those that all have in common.
void join_updates(Rewriter& rewriter, const std::vector<const Node*>& nodes, Operation update, std::size_t shared) {
  std::vector<NodeId> ids;
  for (const Node* node : nodes) ids.push_back(node->id);
  rewriter.replace(ids, [&rewriter, nodes, update = std::move(update), shared] {
    std::vector<Tensor> inputs = rewriter.map(std::span(nodes.front()->inputs).first(shared));
    for (const Node* node : nodes) {
      for (const Tensor& input : std::span(node->inputs).subspan(shared)) inputs.push_back(rewriter.map(input));
    }
    const Tensor now = rewriter.to().add(update, std::move(inputs), "update/" + nodes.front()->name);
    for (const Node* node : nodes) rewriter.set(node->id, 0, now);
  });
}

// A convolution adds into the addend's memory, so all its other readers must be older and nothing else may keep it.
bool can_add_into(const Rewriter& rewriter, Tensor addend, const Node& convolution, const Node& sum) {
  const Node& producer = rewriter.from().node(addend);
  if (producer.inputs.empty()) return false;
  const auto& readers = rewriter.readers(addend);
  return std::all_of(readers.begin(), readers.end(),
                     [&](NodeId reader) { return reader == sum.id || (reader >= 0 && reader < convolution.id); });
}

bool is_relu_backward(const Node& node) {
  const auto* unary = node.as<op::UnaryBackward>();
  return unary != nullptr && unary->kind == op::UnaryKind::relu;
}

bool is_output(const Tensor& tensor, const Node& node, int output) {
  return tensor.node == node.id && tensor.output == output;
}

// Whether dst is just relu(normalized src), with the src, statistics and gamma of this backward.
bool is_positive_part_of_norm(const Node& forward, Tensor dst, const Node& backward) {
  const auto* norm = forward.as<op::BatchNorm>();
  const auto* reverse = backward.as<op::BatchNormBackward>();
  return norm != nullptr && dst.output == 0 && !norm->add && norm->activation == op::Activation::relu &&
         norm->gamma == reverse->gamma && norm->epsilon == reverse->epsilon &&
         forward.inputs[0] == backward.inputs[0] && is_output(backward.inputs[1], forward, 1) &&
         is_output(backward.inputs[2], forward, 2) && (!norm->gamma || forward.inputs[1] == backward.inputs[3]);
}

// Convolution + BatchNormInference: folds the scale into the weights, the shift into the bias, when variables change.
PlanGraph fold_batch_norm(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* convolution = node.as<op::Convolution>();
    const Node* reader = convolution == nullptr ? nullptr : rewriter.only_reader(node);
    const auto* norm = reader == nullptr ? nullptr : reader->as<op::BatchNormInference>();
    if (norm == nullptr || convolution->bias || convolution->add || convolution->activation != op::Activation::none ||
        norm->add || norm->activation != op::Activation::none || reader->inputs[0].node != node.id) {
      continue;
    }
    rewriter.replace({node.id, reader->id}, [&rewriter, &node, reader, convolution, norm] {
      const std::vector<Tensor> of_norm = rewriter.map(std::span(reader->inputs).subspan(1));
      std::size_t next = 0;
      const Tensor gamma = norm->gamma ? of_norm[next++] : Tensor{};
      const Tensor beta = of_norm[next++];
      const Tensor mean = of_norm[next++];
      const Tensor variance = of_norm[next++];
      Graph& graph = rewriter.to();
      const Graph::Scope scope(graph, reader->name + "/folded");
      const Tensor deviation = unary(op::UnaryKind::sqrt, variance + constant(graph, norm->epsilon));
      const Tensor scale = gamma ? gamma / deviation : constant(graph, 1.0f) / deviation;
      const Tensor weights = rewriter.map(node.inputs[1]);
      const std::int64_t out = weights.shape()[0];
      const Tensor folded = weights * reshape(scale, {out, 1, 1, 1});
      const Tensor bias = beta - mean * scale;
      op::Convolution fused = *convolution;
      fused.bias = true;
      rewriter.set(reader->id, 0, graph.add(fused, {rewriter.map(node.inputs[0]), folded, bias}, "convolution"));
    });
  }
  return rewriter.finish();
}

// Convolution + Bias.
PlanGraph fuse_bias(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* convolution = node.as<op::Convolution>();
    const Node* reader = convolution == nullptr ? nullptr : rewriter.only_reader(node);
    const auto* bias = reader == nullptr ? nullptr : reader->as<op::Bias>();
    if (bias == nullptr || convolution->bias || convolution->add || convolution->activation != op::Activation::none)
      continue;
    op::Convolution fused = *convolution;
    fused.bias = true;
    fused.activation = bias->activation;
    replace_pair(rewriter, node, *reader, 0, fused, joined(node.inputs, std::span(reader->inputs).subspan(1)));
  }
  return rewriter.finish();
}

// {Convolution, BatchNorm, BatchNormInference} + Binary add.
PlanGraph fuse_sum(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& sum : from.graph->nodes()) {
    if (!is_plain_sum(sum)) continue;
    // Prefer the younger candidate: the other one is computed before it anyway.
    const bool second_younger = sum.inputs[1].node > sum.inputs[0].node;
    for (const int side : {second_younger ? 1 : 0, second_younger ? 0 : 1}) {
      const Tensor main = sum.inputs[side];
      const Tensor addend = sum.inputs[1 - side];
      const Node& node = from.graph->node(main);
      const auto fused = with_sum(node.op);
      if (!fused || main.output != 0 || rewriter.only_reader(node) != &sum || rewriter.claimed(node.id) ||
          rewriter.depends_on(addend, node.id) ||
          (node.as<op::Convolution>() != nullptr && !can_add_into(rewriter, addend, node, sum))) {
        continue;
      }
      replace_pair(rewriter, node, sum, 0, *fused, joined(node.inputs, {&addend, 1}));
      break;
    }
  }
  return rewriter.finish();
}

// {Convolution, FullyConnected, Bias, BatchNorm, BatchNormInference, Binary add} + ReLU.
PlanGraph fuse_relu(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto fused = with_relu(node.op);
    const Node* reader = fused ? rewriter.only_reader(node) : nullptr;
    if (!is_relu(reader)) continue;
    replace_pair(rewriter, node, *reader, 0, *fused, node.inputs);
  }
  return rewriter.finish();
}

// Max PoolBackward + ReLU backward. Comes before the next pass, since what follows then needs no mask.
PlanGraph fuse_pool_backward(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* pool = node.as<op::PoolBackward>();
    if (pool == nullptr || pool->kind != op::PoolKind::max || pool->activation != op::Activation::none) continue;
    const Node* mask = rewriter.only_reader(node);
    // The mask is the pool's input: the tensor between the two forward operations.
    if (mask == nullptr || !is_relu_backward(*mask) || mask->inputs[0].node != node.id ||
        mask->inputs[1] != node.inputs[1]) {
      continue;
    }
    op::PoolBackward fused = *pool;
    fused.activation = op::Activation::relu;
    replace_pair(rewriter, node, *mask, 0, fused, node.inputs);
  }
  return rewriter.finish();
}

// ReLU backward + BatchNormBackward; also outputs the masked gradient if a sum needs it.
PlanGraph fuse_relu_backward(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* norm = node.as<op::BatchNormBackward>();
    if (norm == nullptr || norm->activation != op::Activation::none) continue;
    const std::size_t diff_at = norm->gamma ? 4 : 3;
    const Tensor diff = node.inputs[diff_at];
    const Node& mask = from.graph->node(diff);
    if (!is_relu_backward(mask) || rewriter.claimed(mask.id)) continue;
    // Other readers of the masked gradient get it from the fused operation.
    const bool add = rewriter.readers(diff).size() > 1;
    op::BatchNormBackward fused = *norm;
    fused.activation = op::Activation::relu;
    fused.add = add;
    replace_pair(rewriter, node, mask, add ? static_cast<int>(node.outputs.size()) : -1, fused,
                 joined(std::span(node.inputs).first(diff_at), mask.inputs));
  }
  return rewriter.finish();
}

// BatchNormBackward + ReLU with the output of a BatchNorm without addend as mask: takes the mask from src.
PlanGraph mask_from_src(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* norm = node.as<op::BatchNormBackward>();
    if (norm == nullptr || norm->activation == op::Activation::none || norm->mask_from_src) continue;
    const Tensor dst = node.inputs.back();
    const Node& forward = from.graph->node(dst);
    if (!is_positive_part_of_norm(forward, dst, node)) continue;
    op::BatchNormBackward fused = *norm;
    fused.mask_from_src = true;
    std::vector<Tensor> inputs = node.inputs;
    inputs.back() = forward.inputs[fused.gamma ? 2 : 1];
    replace_pair(rewriter, node, node, -1, fused, std::move(inputs));
  }
  return rewriter.finish();
}

// Binary add + BatchNormBackward: the gradients that meet at the start of a residual block.
PlanGraph fuse_gradient_sum(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* norm = node.as<op::BatchNormBackward>();
    if (norm == nullptr || norm->sum) continue;
    const std::size_t diff_at = norm->gamma ? 4 : 3;
    const Node& sum = from.graph->node(node.inputs[diff_at]);
    if (!is_plain_sum(sum) || rewriter.only_reader(sum) != &node) continue;
    op::BatchNormBackward fused = *norm;
    fused.sum = true;
    const std::span inputs(node.inputs);
    replace_pair(rewriter, node, sum, -1, fused,
                 joined(inputs.first(diff_at), sum.inputs, inputs.subspan(diff_at + 1)));
  }
  return rewriter.finish();
}
// Adjacent ApplyGradients of one rule and owner: one update over an arena range of about update_bytes.
PlanGraph fuse_updates(const PlanGraph& from, std::int64_t update_bytes, const VariableOwners& owners) {
  struct Bucket {
    std::vector<const Node*> nodes = {};
    std::int64_t bytes = 0;
  };
  Rewriter rewriter(from);
  const auto close = [&rewriter](Bucket& bucket) {
    if (bucket.nodes.size() > 1) join_updates(rewriter, bucket.nodes, bucket.nodes.front()->op, 1);
    bucket = {};
  };
  const auto owner_of = [&](const Node& apply) {
    const auto found = owners.find(from.origin.at(apply.inputs[1].node));
    return found == owners.end() ? -1 : found->second;
  };
  std::map<int, Bucket> buckets;  // open ones, by owner
  // From last variable to first: the order in which backward completes gradients.
  for (auto it = from.graph->nodes().rbegin(); it != from.graph->nodes().rend(); ++it) {
    const auto* apply = it->as<op::ApplyGradients>();
    if (apply == nullptr) continue;
    Bucket& bucket = buckets[owner_of(*it)];
    if (!bucket.nodes.empty()) {
      const Node& last = *bucket.nodes.back();
      if (last.as<op::ApplyGradients>()->rule != apply->rule || last.inputs[0] != it->inputs[0]) close(bucket);
    }
    bucket.nodes.push_back(&*it);
    bucket.bytes += it->inputs[1].type().bytes();
    if (bucket.bytes >= update_bytes) close(bucket);
  }
  for (auto& [owner, bucket] : buckets) close(bucket);
  return rewriter.finish();
}

// MovingAverages of one decay and owner with computed values: one update of all their variables.
PlanGraph fuse_averages(const PlanGraph& from, const VariableOwners& owners) {
  Rewriter rewriter(from);
  // If an average reads a variable as its value, that variable's update comes later, and maybe before another average.
  const auto reads_variable = [&](const Node& average) {
    for (std::size_t i = 1; i < average.inputs.size(); i += 2) {
      if (from.graph->node(average.inputs[i]).as<op::Variable>() != nullptr) return true;
    }
    return false;
  };
  std::map<std::pair<float, int>, std::vector<const Node*>> alike;
  for (const Node& node : from.graph->nodes()) {
    const auto* average = node.as<op::MovingAverage>();
    if (average == nullptr || reads_variable(node)) continue;
    const auto owner = owners.find(from.origin.at(node.inputs[0].node));
    alike[{average->decay, owner == owners.end() ? -1 : owner->second}].push_back(&node);
  }
  for (const auto& [decay_and_owner, averages] : alike) {
    if (averages.size() < 2) continue;
    op::MovingAverage update{.decay = decay_and_owner.first, .scales = {}};
    for (const Node* node : averages) {
      const auto& scales = node->as<op::MovingAverage>()->scales;
      update.scales.insert(update.scales.end(), scales.begin(), scales.end());
    }
    join_updates(rewriter, averages, std::move(update), 0);
  }
  return rewriter.finish();
}

}  // namespace

VariableOwners divide_by_rule(const Graph& graph, const VariableOwners& owners) {
  std::vector<op::OptimizerRule> rules;
  std::map<NodeId, int> rule_of;  // by variable
  for (const Node& node : graph.nodes()) {
    const auto* apply = node.as<op::ApplyGradients>();
    if (apply == nullptr) continue;
    const auto found = std::find(rules.begin(), rules.end(), apply->rule);
    rule_of.emplace(node.inputs[1].node, static_cast<int>(found - rules.begin()));
    if (found == rules.end()) rules.push_back(apply->rule);
  }
  if (rules.size() < 2) return owners;
  VariableOwners divided;
  for (const NodeId variable : graph.variables()) {
    const auto owner = owners.find(variable);
    const auto rule = rule_of.find(variable);
    divided[variable] = (owner == owners.end() ? -1 : owner->second) * static_cast<int>(rules.size()) +
                        (rule == rule_of.end() ? 0 : rule->second);
  }
  return divided;
}

PlanGraph fuse_operations(PlanGraph graph, bool masks_from_src) {
  graph = fold_batch_norm(graph);
  graph = fuse_bias(graph);
  graph = fuse_sum(graph);
  graph = fuse_relu(graph);
  graph = fuse_pool_backward(graph);
  graph = fuse_relu_backward(graph);
  if (masks_from_src) graph = mask_from_src(graph);
  return fuse_gradient_sum(graph);
}

PlanGraph fuse_all_updates(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners,
                           const VariableOwners& owners_of_statistics) {
  return fuse_averages(fuse_updates(graph, update_bytes, owners), owners_of_statistics);
}

PlanGraph fuse_all(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners, bool masks_from_src) {
  return fuse_all_updates(fuse_operations(std::move(graph), masks_from_src), update_bytes, owners);
}

}  // namespace trireme
