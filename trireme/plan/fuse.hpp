// The fusing passes: each takes a graph and gives one with fewer, larger operations that compute the same. The order
// matters: batch norm is folded into convolutions first (programs without batch statistics), then bias, sum and ReLU
// join the operation before them, then the same backward, then the optimizer's updates join over the arena, and the
// updates of running statistics.
#pragma once

#include "trireme/plan/program.hpp"
#include "trireme/plan/rewriter.hpp"

namespace trireme {

// Convolution + BatchNormInference: the scale goes into the weights, the shift into the bias; both depend on variables
// alone, so they are computed only when those have changed.
PlanGraph fold_batch_norm(const PlanGraph& from);
// Convolution + Bias.
PlanGraph fuse_bias(const PlanGraph& from);
// {Convolution, BatchNorm, BatchNormInference} + Binary add.
PlanGraph fuse_sum(const PlanGraph& from);
// {Convolution, FullyConnected, Bias, BatchNorm, BatchNormInference, Binary add} + ReLU.
PlanGraph fuse_relu(const PlanGraph& from);
// Max PoolBackward + ReLU backward: what follows needs no mask then, so this comes before the next one.
PlanGraph fuse_pool_backward(const PlanGraph& from);
// ReLU backward + BatchNormBackward; the masked gradient comes out as well where a sum needs it.
PlanGraph fuse_relu_backward(const PlanGraph& from);
// BatchNormBackward + ReLU whose mask is the output of a BatchNorm without addend: takes the mask from src.
PlanGraph mask_from_src(const PlanGraph& from);
// Binary add + BatchNormBackward: the gradients that meet where a residual block begins.
PlanGraph fuse_gradient_sum(const PlanGraph& from);
// Neighbouring ApplyGradients of one rule, to variables of one owner: one update over a range of the arena of about
// update_bytes.
PlanGraph fuse_updates(const PlanGraph& from, std::int64_t update_bytes, const VariableOwners& owners = {});
// MovingAverages of one decay whose values are computed: one update of all their variables.
PlanGraph fuse_averages(const PlanGraph& from);

// Owners of whom each has variables of one rule: those of two rules, such as with weight decay and without, would take
// turns in memory, and an update end with every change.
VariableOwners divide_by_rule(const Graph& graph, const VariableOwners& owners);

// All of them. update_bytes, owners: see CompileOptions; masks_from_src: see Backend.
PlanGraph fuse_all(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners = {},
                   bool masks_from_src = false);

}  // namespace trireme
