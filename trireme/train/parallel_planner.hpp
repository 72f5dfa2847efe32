// Finds how workers should share a network, from what its layers and the links cost: cuts, workers of each stage,
// micro-batches and schedule. Plain arithmetic; choose_parallel.hpp measures the costs and checks the memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/all_reducer.hpp"
#include "trireme/plan/compile_options.hpp"
#include "trireme/train/pipeline_config.hpp"

namespace trireme::train {

// Of something done with some images at a time: seconds or bytes.
struct LinearCost {
  double fixed = 0, per_image = 0;
  double of(double images) const { return fixed + per_image * images; }
};

// The operations between two places at which a part may begin.
struct Layer {
  std::string begins_at;
  LinearCost forward, backward, weights;  // seconds
  double crossing = 0;                    // bytes per image that later layers read, of this and earlier ones
  double kept = 0;                        // bytes per image that backward reads
  double variables = 0;                   // bytes
};

struct NetworkCosts {
  std::vector<Layer> layers;
  double update = 0;  // seconds of the optimizer per byte of variables
  double copies = 0;  // of each variable that a worker holds: value, gradient, sum, optimizer state
};

struct JobCosts {
  std::vector<int> nodes;  // [rank]
  comm::CostModel links;
  double memory = 0;        // bytes that a worker may use; 0: no limit
  std::int64_t images = 0;  // per step, of all workers
  std::int64_t bucket_bytes = 0;
  bool overlap = true;  // all-reduce during backward
  // What plans with micro-batches have to keep to.
  std::optional<PipelineKind> kind = {};
  std::optional<int> micro_batches = {};
  std::int64_t least_images = 1;  // of a micro-batch
};

struct ParallelPlan {
  PipelineConfig pipeline = {};  // unused: data parallel
  Recompute recompute = Recompute::none;
  double seconds = 0;  // of a step
  double memory = 0;   // bytes, of the worker that needs most; roughly
  double idle_share = 0;
  std::string problem = {};  // why it cannot be used; empty: it can

  std::string text() const;
};

// Predicts the step of a plan, and gives it the costs that its schedule needs. Layers must begin at its cuts.
void predict(ParallelPlan& plan, const NetworkCosts& network, const JobCosts& job);

// Data parallelism first, then the best plan for each division of the workers into stages, fastest first. Plans that
// need more memory than the job has, by rough figures, are left out.
std::vector<ParallelPlan> make_plans(const NetworkCosts& network, const JobCosts& job);

}  // namespace trireme::train
