// Running statistics in a stage of several workers, of which each sees every n-th micro-batch.
#include <algorithm>
#include <cmath>

#include "trireme/plan/stages.hpp"

namespace trireme {
namespace {

// One process would weigh the last of n micro-batches with 1 - decay, the one before with (1 - decay) * decay, ... A
// worker weighs its own by n times as much, and what it had by decay^n: the mean of the workers is then the same.
op::MovingAverage of_every_nth(op::MovingAverage average, int workers, int worker) {
  const double decay = average.decay, decay_of_all = std::pow(decay, workers);
  const double share = (1 - decay) * std::pow(decay, workers - 1 - worker) * workers;
  average.decay = static_cast<float>(decay_of_all);
  for (float& scale : average.scales) scale = static_cast<float>(scale * share / (1 - decay_of_all));
  return average;
}

}  // namespace

PlanGraph divide_averages(PlanGraph plan, const Parts& parts, const StageOptions& stages) {
  const PipelineShape& shape = stages.order.shape;
  if (shape.workers_from(0) == shape.stages) return plan;
  Rewriter rewriter(plan);
  for (const Node& node : plan.graph->nodes()) {
    const auto* average = node.as<op::MovingAverage>();
    if (average == nullptr) continue;
    const int workers = shape.replicas_of(stages.order.stage_of(parts.nodes[static_cast<std::size_t>(node.id)].part));
    const int worker = std::min(stages.replica, workers - 1);  // other stages' averages are not computed here
    rewriter.replace({node.id}, [&rewriter, &node, own = of_every_nth(*average, workers, worker)] {
      rewriter.set(node.id, 0, rewriter.to().add(own, rewriter.map(node.inputs), node.name));
    });
  }
  return rewriter.finish();
}

}  // namespace trireme
