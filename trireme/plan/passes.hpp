// The compiler passes in compile()'s order: fusing, recomputation, order, memory. All are pure functions.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "trireme/plan/program.hpp"
#include "trireme/plan/rewriter.hpp"

namespace trireme {

// Whether it has a value before any operation runs.
inline bool is_source(const Node& node) {
  return node.as<op::Placeholder>() != nullptr || node.as<op::Variable>() != nullptr ||
         node.as<op::Constant>() != nullptr;
}

// Fusing: fewer, larger operations. The order matters: first batch norm is folded into convolutions (programs without
// batch statistics), then bias, sum and ReLU join the operation before them, then the same for backward, then optimizer
// updates and running statistics. update_bytes, owners: see CompileOptions; masks_from_src: see Backend.
PlanGraph fuse_all(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners = {},
                   bool masks_from_src = false);
// Its two parts. Running statistics are joined if their owners are one; others than those of the updates.
PlanGraph fuse_operations(PlanGraph graph, bool masks_from_src);
PlanGraph fuse_all_updates(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners,
                           const VariableOwners& owners_of_statistics = {});

// Splits owners so that each has variables of one rule: those of two rules, such as with and without weight decay,
// would alternate in memory and end an update at every change.
VariableOwners divide_by_rule(const Graph& graph, const VariableOwners& owners);

// Recomputation: drops forward results that only backward needs and computes them again right before, to save memory.
// Copies of nodes, listed in PlanGraph::copies, precede the first backward node that reads them; batch norm's reuse the
// statistics. Returns the graph unchanged if recompute is none or there is no backward. kept: nodes whose results are
// not dropped; empty: any may be.
PlanGraph recompute(PlanGraph graph, Recompute recompute, const std::vector<bool>& kept = {});

// Per instruction, the (input, output) positions whose memory may be the same.
using InPlacePairs = std::vector<std::vector<std::pair<int, int>>>;

// The cost of the copies, and the arena without them. Call before memory is planned.
Recomputation measure_recomputation(const Program& program, const std::unordered_map<NodeId, NodeId>& copies,
                                    const InPlacePairs& in_place, const CompileOptions& options);

// Execution order: creation order, with each update moved to the first place at which its inputs are computed and
// nothing reads the old value any more. Error(bad_input) if two updates write one variable, or updates read each
// other's variables in a cycle: the result would depend on their order.
std::vector<NodeId> execution_order(const Graph& graph);

// Lets buffers that are never alive together share memory and assigns arena offsets: fills first, last, shares and
// offset. Fed inputs, fetches and results of once-only instructions live through the whole program.
MemorySummary plan_memory(Program& program, const InPlacePairs& in_place, const CompileOptions& options);

}  // namespace trireme
