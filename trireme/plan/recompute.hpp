// Recomputation: results of forward that only backward still needs are dropped and computed again right before it needs
// them, which takes time and frees memory. Used by compile() after fusing, so that fused operations are what runs
// again.
#pragma once

#include "trireme/plan/memory.hpp"
#include "trireme/plan/rewriter.hpp"

namespace trireme {

// The graph with a copy of every node that runs again, created before the first backward node that reads it and listed
// in PlanGraph::copies. Batch norm does not compute its statistics again: its copy applies those that the
// node has found. Gives back the graph itself if nothing can be saved: recompute is none, or there is no backward.
PlanGraph recompute(PlanGraph graph, Recompute recompute);

// What the copies cost, and the arena that the program would have without them. Called before memory is planned.
Recomputation measure_recomputation(const Program& program, const std::unordered_map<NodeId, NodeId>& copies,
                                    const InPlacePairs& in_place, const CompileOptions& options);

}  // namespace trireme
