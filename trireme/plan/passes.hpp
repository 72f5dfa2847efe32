// The passes of the compiler, in the order in which compile() runs them: fusing, recomputation, order, memory. Each is
// a function of its arguments alone.
#pragma once

#include <unordered_map>
#include <utility>
#include <vector>

#include "trireme/plan/program.hpp"
#include "trireme/plan/rewriter.hpp"

namespace trireme {

// Fusing: a graph with fewer, larger operations that compute the same. The order matters: batch norm is folded into
// convolutions first (programs without batch statistics), then bias, sum and ReLU join the operation before them, then
// the same backward, then the optimizer's updates join over the arena, and the updates of running statistics.
// update_bytes, owners: see CompileOptions; masks_from_src: see Backend.
PlanGraph fuse_all(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners = {},
                   bool masks_from_src = false);

// Owners of whom each has variables of one rule: those of two rules, such as with weight decay and without, would take
// turns in memory, and an update end with every change.
VariableOwners divide_by_rule(const Graph& graph, const VariableOwners& owners);

// Recomputation: results of forward that only backward still needs are dropped and computed again right before it needs
// them, which takes time and frees memory. The graph with a copy of every node that runs again, created before the
// first backward node that reads it and listed in PlanGraph::copies. Batch norm does not compute its statistics again:
// its copy applies those that the node has found. Returns the graph itself if nothing can be saved: recompute is none,
// or there is no backward.
PlanGraph recompute(PlanGraph graph, Recompute recompute);

// For each instruction, the (input, output) positions whose memory may be the same.
using InPlacePairs = std::vector<std::vector<std::pair<int, int>>>;

// What the copies cost, and the arena that the program would have without them. Called before memory is planned.
Recomputation measure_recomputation(const Program& program, const std::unordered_map<NodeId, NodeId>& copies,
                                    const InPlacePairs& in_place, const CompileOptions& options);

// The order in which a program runs its nodes: the order of creation, with each update moved to the first place at
// which its inputs are computed and nothing reads the old value any more. Error(bad_input) if two updates write one
// variable, or if updates read each other's variables in a cycle: the result would depend on their order.
std::vector<NodeId> execution_order(const Graph& graph);

// Memory: which buffers may share memory because they are never alive together, and where each one is in the arena.
// Fills first, last, shares and offset of the arena's buffers and returns the summary. Inputs that are fed, fetches and
// results of instructions that run once live through the whole program.
MemorySummary plan_memory(Program& program, const InPlacePairs& in_place, const CompileOptions& options);

}  // namespace trireme
