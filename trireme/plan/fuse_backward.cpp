#include "trireme/plan/fuse.hpp"

namespace trireme {
namespace {

bool is_relu_backward(const Node& node) {
  const auto* unary = node.as<op::UnaryBackward>();
  return unary != nullptr && unary->kind == op::UnaryKind::relu;
}

bool is_output(const Tensor& tensor, const Node& node, int output) {
  return tensor.node == node.id && tensor.output == output;
}

// A sum of two tensors of one shape, with nothing fused into it.
bool is_plain_sum(const Node& node) {
  const auto* sum = node.as<op::Binary>();
  return sum != nullptr && sum->kind == op::BinaryKind::add && sum->activation == op::Activation::none &&
         node.inputs[0].shape() == node.inputs[1].shape();
}

// Whether dst is relu(normalised src) and nothing else, with the src, the statistics and the gamma of this backward.
bool is_positive_part_of_norm(const Node& forward, Tensor dst, const Node& backward) {
  const auto* norm = forward.as<op::BatchNorm>();
  const auto* reverse = backward.as<op::BatchNormBackward>();
  return norm != nullptr && dst.output == 0 && !norm->add && norm->activation == op::Activation::relu &&
         norm->gamma == reverse->gamma && norm->epsilon == reverse->epsilon &&
         forward.inputs[0] == backward.inputs[0] && is_output(backward.inputs[1], forward, 1) &&
         is_output(backward.inputs[2], forward, 2) && (!norm->gamma || forward.inputs[1] == backward.inputs[3]);
}

}  // namespace

PlanGraph fuse_pool_backward(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* pool = node.as<op::PoolBackward>();
    if (pool == nullptr || pool->kind != op::PoolKind::max || pool->activation != op::Activation::none) continue;
    const Node* mask = rewriter.only_reader(node);
    // The mask is what the pool has read: the tensor between the two forward operations.
    if (mask == nullptr || !is_relu_backward(*mask) || mask->inputs[0].node != node.id ||
        mask->inputs[1] != node.inputs[1]) {
      continue;
    }
    op::PoolBackward fused = *pool;
    fused.activation = op::Activation::relu;
    rewriter.replace({node.id, mask->id}, [&rewriter, &node, mask, fused] {
      rewriter.set(mask->id, 0, rewriter.to().add(fused, rewriter.map(node.inputs), node.name));
    });
  }
  return rewriter.finish();
}

PlanGraph fuse_relu_backward(const PlanGraph& from) {
  Rewriter rewriter(from);
  for (const Node& node : from.graph->nodes()) {
    const auto* norm = node.as<op::BatchNormBackward>();
    if (norm == nullptr || norm->activation != op::Activation::none) continue;
    const std::size_t diff_at = norm->gamma ? 4 : 3;
    const Tensor diff = node.inputs[diff_at];
    const Node& mask = from.graph->node(diff);
    if (!is_relu_backward(mask) || rewriter.claimed(mask.id)) continue;
    // Others that read the masked gradient get it from the fused operation.
    const bool add = rewriter.readers(diff).size() > 1;
    op::BatchNormBackward fused = *norm;
    fused.activation = op::Activation::relu;
    fused.add = add;
    rewriter.replace({node.id, mask.id}, [&rewriter, &node, &mask, fused, diff_at] {
      std::vector<Tensor> inputs = rewriter.map(std::span(node.inputs).first(diff_at));
      inputs.push_back(rewriter.map(mask.inputs[0]));
      inputs.push_back(rewriter.map(mask.inputs[1]));
      const NodeId now = rewriter.to().add(fused, std::move(inputs), node.name).node;
      const int outputs = static_cast<int>(node.outputs.size());
      for (int i = 0; i < outputs; ++i) rewriter.set(node.id, i, rewriter.to().output(now, i));
      if (fused.add) rewriter.set(mask.id, 0, rewriter.to().output(now, outputs));
    });
  }
  return rewriter.finish();
}

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
    rewriter.replace({node.id}, [&rewriter, &node, &forward, fused] {
      std::vector<Tensor> inputs = rewriter.map(std::span(node.inputs).first(node.inputs.size() - 1));
      inputs.push_back(rewriter.map(forward.inputs[fused.gamma ? 2 : 1]));
      const NodeId now = rewriter.to().add(fused, std::move(inputs), node.name).node;
      for (int i = 0; i < std::ssize(node.outputs); ++i) rewriter.set(node.id, i, rewriter.to().output(now, i));
    });
  }
  return rewriter.finish();
}

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
    rewriter.replace({node.id, sum.id}, [&rewriter, &node, &sum, fused, diff_at] {
      std::vector<Tensor> inputs = rewriter.map(std::span(node.inputs).first(diff_at));
      for (const Tensor& addend : sum.inputs) inputs.push_back(rewriter.map(addend));
      for (const Tensor& rest : std::span(node.inputs).subspan(diff_at + 1)) inputs.push_back(rewriter.map(rest));
      const NodeId now = rewriter.to().add(fused, std::move(inputs), node.name).node;
      for (int i = 0; i < std::ssize(node.outputs); ++i) rewriter.set(node.id, i, rewriter.to().output(now, i));
    });
  }
  return rewriter.finish();
}

}  // namespace trireme
