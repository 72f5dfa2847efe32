// Pipelines: cuts a training graph into parts and keeps of a program what one stage runs, for all micro-batches of a
// step in the order of the schedule, with the transfers from and to other stages. Any number of edges may cross any
// number of parts. All stages compile the same program first, so kernels, layouts and thus results are those of one
// process. Used by compile() with CompileOptions::stages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "trireme/plan/passes.hpp"
#include "trireme/plan/pipeline_order.hpp"

namespace trireme {

struct StageOptions {
  std::vector<std::string> cuts;  // of the nodes after fusing, those at which the parts 1, 2, ... begin, in order
  PipelineOrder order;
  // The worker to compile for.
  int stage = 0;
  int replica = 0;
};

enum class Phase : std::uint8_t { forward, backward, weights };  // weights: what only updates of variables need

struct Parts {
  struct Place {
    int part = -1;  // -1: each part that needs it has its own: placeholders, constants and what follows from them
    Phase phase = Phase::forward;
  };
  std::vector<Place> nodes;  // [node of the graph]; a variable's part is that of its readers
};
// Error(bad_input) if a cut names no node, or parts on both sides of it use a variable. copies: of nodes of forward, to
// compute them again in backward, and what they repeat.
Parts divide(const Graph& graph, const std::vector<std::string>& cuts,
             const std::unordered_map<NodeId, NodeId>& copies = {});

// By node: some other part reads its results.
std::vector<bool> crossing_nodes(const Graph& graph, const Parts& parts);

// What one update writes belongs to one part, and its gradients are complete in one phase.
VariableOwners owners_by_part(const PlanGraph& graph, const Parts& parts, const VariableOwners& owners);

// Moving averages of micro-batches, by the workers of a stage: each takes its own micro-batches, and the mean of the
// workers' values is what one process has that takes all of them in order. For a graph as divided.
PlanGraph divide_averages(PlanGraph plan, const Parts& parts, const StageOptions& stages);

// Where a part of what the fetches need may begin, as a backend sees the graph, in order.
std::vector<std::string> possible_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend);

// Cuts that make the most expensive part as cheap as possible; workers: that share a part's work and sum its gradients
// once per step, empty: one each. Error(bad_input) if there are not enough places.
std::vector<std::string> choose_cuts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                     int parts, const std::vector<int>& workers = {}, int micro_batches = 1);

// What a part of a graph does for one micro-batch.
struct PartWork {
  double forward = 0, backward = 0, weights = 0;  // seconds
  std::int64_t sent_bytes = 0;                    // to other parts
  std::int64_t crossing_bytes = 0;                // results of forward, of this and earlier parts, that later ones read
  std::int64_t kept_bytes = 0;                    // results of forward that backward reads
  std::int64_t variable_bytes = 0;
};
double rough_seconds(const Node& node);  // of an operation, from its flops and bytes
std::vector<PartWork> work_of_parts(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                    const std::vector<std::string>& cuts,
                                    const std::function<double(const Node&)>& seconds = rough_seconds);

// Of a program of one micro-batch.
std::pair<Program, InPlacePairs> keep_stage(const Program& whole, const InPlacePairs& in_place, const Parts& parts,
                                            const StageOptions& options);

// Of a worker of each stage, whichever the options name; compiles once. Without stages: of the program.
std::vector<MemorySummary> memory_of_stages(const Graph& graph, std::span<const Tensor> fetches, const Backend& backend,
                                            const CompileOptions& options);

}  // namespace trireme
