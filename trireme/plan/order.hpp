// The order in which a program runs its nodes: the order of creation, with each update moved to the first place at
// which its inputs are computed and nothing reads the old value any more.
#pragma once

#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme {

// Error(bad_input) if two updates write one variable, or if updates read each other's variables in a cycle: the result
// would depend on their order.
std::vector<NodeId> execution_order(const Graph& graph);

}  // namespace trireme
