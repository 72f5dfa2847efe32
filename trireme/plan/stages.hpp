// Pipelines: cuts a training graph into parts and keeps of a program what one stage runs, for all micro-batches of a
// step in the order of the schedule, with the transfers from and to other stages. Any number of edges may cross any
// number of parts. All stages compile the same program first, so kernels, layouts and thus results are those of one
// process. Used by compile() with CompileOptions::stages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trireme/plan/passes.hpp"
#include "trireme/plan/pipeline_order.hpp"

namespace trireme {

struct StageOptions {
  std::vector<std::string> cuts;  // of the nodes after fusing, those at which the parts 1, 2, ... begin, in order
  PipelineOrder order;
  std::vector<int> replicas;  // [stage]: processes. Micro-batch m belongs to the replica m % replicas.
  // The one to compile for.
  int stage = 0;
  int replica = 0;

  // Ranks are numbered stage by stage.
  int rank_of(int stage_of_rank, int micro_batch) const;
};

enum class Phase : std::uint8_t { forward, backward, weights };  // weights: what only updates of variables need

struct Parts {
  struct Place {
    int part = -1;  // -1: each part that needs it has its own: placeholders, constants and what follows from them
    Phase phase = Phase::forward;
  };
  std::vector<Place> nodes;  // [node of the graph]; a variable's part is that of its readers
};
// Error(bad_input) if a cut names no node, or parts on both sides of it use a variable.
Parts divide(const Graph& graph, const std::vector<std::string>& cuts);

// What one update writes belongs to one part, and its gradients are complete in one phase.
VariableOwners owners_by_part(const PlanGraph& graph, const Parts& parts, const VariableOwners& owners);

// Cuts that make the most expensive part of what the fetches need as cheap as possible, as a backend sees the graph.
// Error(bad_input) if there are not enough places.
std::vector<std::string> choose_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                     int parts);

// Work and crossing bytes of each part of a graph, forward and backward, for one micro-batch.
struct PartWork {
  double forward = 0, backward = 0, weights = 0;  // seconds, roughly
  std::int64_t sent_bytes = 0;                    // to other parts
  std::int64_t variable_bytes = 0;
};
std::vector<PartWork> work_of_parts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                    const std::vector<std::string>& cuts);

// Replaces a program of one micro-batch.
void keep_stage(Program& program, InPlacePairs& in_place, const Parts& parts, const StageOptions& options);

}  // namespace trireme
