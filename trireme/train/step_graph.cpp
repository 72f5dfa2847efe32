#include "trireme/train/step_graph.hpp"

#include "trireme/graph/functions.hpp"

namespace trireme::train {

namespace {

// Batch norm sees this many times the images of the graph's batch.
int statistics_groups(const StepConfig& config, int groups) {
  if (config.distribution.sync_batch_norm) return config.distribution.workers;
  return config.batch_norm_over == BatchNormOver::group ? 1 : groups;
}

}  // namespace

StepGraph build_step(Graph& graph, const StepConfig& config, int groups) {
  StepGraph step;
  step.model = build_model(graph, config.options.model,
                           {.batch_size = config.images_per_run() / groups,
                            .groups = statistics_groups(config, groups),
                            .num_classes = config.num_classes,
                            .training = !config.options.forward_only,
                            .aux_head = config.options.aux_head,
                            .label_smoothing = static_cast<float>(config.options.label_smoothing),
                            .dropout = !config.options.no_dropout});
  step.fetches = {step.model.loss};
  if (config.options.forward_only) {
    step.fetches.insert(step.fetches.end(), {step.model.top1, step.model.top5});
    return step;
  }
  if (config.options.train_accuracy) step.fetches.push_back(step.model.top1);
  step.learning_rate = placeholder(graph, {}, "learning_rate");
  const auto rule = [&](Tensor variable) {
    op::OptimizerRule own = config.optimizer;
    if (!config.decays_batch_norm && is_batch_norm_parameter(graph, variable)) own.weight_decay = 0;
    return own;
  };
  if (config.precision == Precision::fp16) step.loss_scale = add_loss_scale(graph);
  const std::vector<Tensor> updates =
      minimize(step.model.loss, RuleFor(rule), step.learning_rate, {}, step.loss_scale ? &*step.loss_scale : nullptr);
  step.fetches.insert(step.fetches.end(), updates.begin(), updates.end());
  return step;
}

std::int64_t trainable_bytes(const Graph& graph) {
  std::int64_t bytes = 0;
  for (const NodeId id : graph.variables()) {
    if (graph.node(id).as<op::Variable>()->trainable) bytes += graph.node(id).outputs[0].bytes();
  }
  return bytes;
}

}  // namespace trireme::train
