// The fusing passes: each takes a graph and gives one with fewer, larger operations that compute the same. The order
// matters: batch norm is folded into convolutions first (programs without batch statistics), then bias, sum and ReLU
// join the operation before them, then the same backward, then the optimizer's updates join over the arena, and the
// updates of running statistics.
#pragma once

#include "trireme/plan/program.hpp"
#include "trireme/plan/rewriter.hpp"

namespace trireme {

// All of them. update_bytes, owners: see CompileOptions; masks_from_src: see Backend.
PlanGraph fuse_all(PlanGraph graph, std::int64_t update_bytes, const VariableOwners& owners = {},
                   bool masks_from_src = false);

// Owners of whom each has variables of one rule: those of two rules, such as with weight decay and without, would take
// turns in memory, and an update end with every change.
VariableOwners divide_by_rule(const Graph& graph, const VariableOwners& owners);

}  // namespace trireme
