// How a network is cut over the workers, from --parallel, --micro-batches and --schedule. Part of DistributionConfig.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "trireme/base/json.hpp"
#include "trireme/config/options.hpp"
#include "trireme/plan/stages.hpp"

namespace trireme::train {

struct PipelineConfig {
  std::vector<int> replicas = {};      // [stage]: workers. Empty: every worker has all layers
  std::vector<std::string> cuts = {};  // nodes at which parts begin; empty: balanced by work
  int micro_batches = 0;               // per step; 0: chosen for the batch
  PipelineKind kind = PipelineKind::one_forward;
  PipelineCosts costs = {};   // measured, by which the schedule is made; empty: nominal
  bool is_automatic = false;  // the worker chooses all of this

  bool is_used() const { return !replicas.empty(); }
  int stages() const { return static_cast<int>(replicas.size()); }
  PipelineShape::Place place_of(int rank) const {
    return PipelineShape{.stages = stages(), .replicas = replicas}.place_of(rank);
  }
  std::string text() const;  // "data", "pipeline:4", "hybrid:3-1", "auto"
};

// Error(bad_input) names the option, the value given and what is legal.
PipelineConfig resolve_pipeline(const DistributionOptions& options, int workers);
// Chooses or checks the number of micro-batches for this many images per step of all workers.
void divide_batch(PipelineConfig& config, std::int64_t global_batch);

// The stage of one worker of a training step's graph.
std::shared_ptr<const StageOptions> stage_options(const PipelineConfig& config, const Graph& graph,
                                                  std::span<const Tensor> fetches, const Backend& backend, int rank);

}  // namespace trireme::train
