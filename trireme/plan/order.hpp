// The order in which a program runs its nodes: the order of creation, with each update moved to the first place where
// what it needs is there and nobody reads the old value any more.
#pragma once

#include <vector>

#include "trireme/graph/graph.hpp"

namespace trireme {

// Error(bad_input) if two updates write one variable, or updates read each other's variables in a circle: their order
// would decide the result.
std::vector<NodeId> execution_order(const Graph& graph);

}  // namespace trireme
