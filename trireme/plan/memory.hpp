// Plans memory ahead of time: which buffers may share memory because they are never alive together, and where each one
// lies in the arena. Used by compile(); a function of its arguments alone.
#pragma once

#include <utility>
#include <vector>

#include "trireme/plan/program.hpp"

namespace trireme {

// For each instruction, the (input, output) positions whose memory may be the same.
using InPlacePairs = std::vector<std::vector<std::pair<int, int>>>;

// Fills first, last, shares and offset of the arena's buffers and returns the summary. Inputs that are fed, fetches and
// results of instructions that run once live through the whole program.
MemorySummary plan_memory(Program& program, const InPlacePairs& in_place, const CompileOptions& options);

}  // namespace trireme
