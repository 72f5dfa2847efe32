// `trireme models --plan --stages`: how a network would be cut into the stages of a pipeline.
#include "cli/models_stages.hpp"

#include <fmt/format.h>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/plan/stages.hpp"
#include "trireme/train/memory_check.hpp"
#include "trireme/train/step_graph.hpp"

namespace trireme::cli {
namespace {

constexpr int kColumns = 96;

Json to_json(const PipelineOrder& order, const PipelineTimes& times) {
  Json stages = Json::array();
  for (std::size_t stage = 0; stage < order.tasks.size(); ++stage) {
    Json tasks = Json::array();
    for (std::size_t i = 0; i < order.tasks[stage].size(); ++i) {
      const PipelineOrder::Task& task = order.tasks[stage][i];
      tasks.push_back({{"task", to_string(task.kind)},
                       {"part", task.part},
                       {"micro_batch", task.micro_batch},
                       {"start", times.tasks[stage][i].start},
                       {"end", times.tasks[stage][i].end}});
    }
    stages.push_back(std::move(tasks));
  }
  return stages;
}

}  // namespace

void show_stages(const train::StepConfig& config, const StagesRequest& request, const TuningOptions& tuning,
                 bool json) {
  const auto kind = find_pipeline_kind(request.schedule);
  if (!kind) bad_input("--schedule {}: must be one of gpipe, 1f1b, interleaved, zb-h1", request.schedule);
  if (config.options.forward_only) bad_input("--stages: a pipeline trains; leave out --forward-only");
  train::StepConfig job = config;
  job.distribution.workers = request.stages;
  train::PipelineConfig& pipeline = job.distribution.pipeline;
  pipeline.replicas.assign(static_cast<std::size_t>(request.stages), 1);
  pipeline.micro_batches = request.micro_batches;
  pipeline.kind = *kind;
  divide_batch(pipeline, job.global_batch_size());
  Graph graph;
  const train::StepGraph step = build_step(graph, job);
  const auto backend = make_backend(config.backend, tuning);
  const auto stages = stage_options(pipeline, graph, step.fetches, *backend, 0);
  pipeline.cuts = stages->cuts;  // found once
  const int parts = stages->order.shape.parts();
  const std::vector<PartWork> work = work_of_parts(graph, step.fetches, *backend, stages->cuts);
  const std::vector<train::MemoryNeed> memory = train::planned_memory({.step = job});
  PipelineCosts costs;
  double sum = 0;
  for (const PartWork& part : work) {
    costs.forward.push_back(part.forward);
    costs.backward.push_back(part.backward);
    costs.weights.push_back(part.weights);
    sum += part.forward + part.backward + part.weights;
  }
  const PipelineTimes times = predict(stages->order, costs);

  Json rows = Json::array();
  TextTable table({{"stage"},
                   {"part"},
                   {"begins at"},
                   {"work", Align::right},
                   {"variables", Align::right},
                   {"sends per micro-batch", Align::right},
                   {"keeps", Align::right},
                   {"memory", Align::right}});
  for (int stage = 0; stage < request.stages; ++stage) {
    const train::MemoryNeed& need = memory[static_cast<std::size_t>(stage)];
    for (int part = stage; part < parts; part += request.stages) {
      const PartWork& own = work[static_cast<std::size_t>(part)];
      const double share = (own.forward + own.backward + own.weights) / sum;
      const std::string begin = part == 0 ? "the images" : stages->cuts[static_cast<std::size_t>(part) - 1];
      const bool is_first = part == stage;
      table.add_row({is_first ? std::to_string(stage) : "", std::to_string(part), begin,
                     fmt::format("{:.1f} %", 100 * share), format_bytes(own.variable_bytes),
                     format_bytes(own.sent_bytes),
                     is_first ? std::to_string(times.kept[static_cast<std::size_t>(stage)]) : "",
                     is_first ? format_bytes(need.total()) : ""});
      rows.push_back({{"stage", stage},
                      {"part", part},
                      {"begins_at", begin},
                      {"work_share", share},
                      {"variable_bytes", own.variable_bytes},
                      {"sent_bytes", own.sent_bytes},
                      {"planned_bytes", static_cast<std::int64_t>(need.activations)},
                      {"memory_bytes", static_cast<std::int64_t>(need.total())}});
    }
  }
  if (json) {
    const Json all{{"model", config.options.model},
                   {"schedule", request.schedule},
                   {"micro_batches", request.micro_batches},
                   {"micro_batch_size", job.images_per_run()},
                   {"parts", rows},
                   {"idle_share", times.idle_share},
                   {"stages", to_json(stages->order, times)}};
    fmt::print("{}\n", all.dump(2));
    return;
  }
  fmt::print("{}: {} stages, {} images per step in {} micro-batches of {}, schedule {}\n\n{}\n", config.options.model,
             request.stages, job.global_batch_size(), request.micro_batches, job.images_per_run(), request.schedule,
             table.text());
  fmt::print(
      "Digits: forward of a micro-batch (its last digit); letters from a: backward; w: gradients of weights; "
      "dots: idle\n{}idle: {:.1f} % of the stages' time, if work takes the time that its flops and bytes suggest "
      "and transfers none\n",
      draw(stages->order, times, kColumns), 100 * times.idle_share);
}

}  // namespace trireme::cli
