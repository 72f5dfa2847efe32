#include "trireme/train/facts.hpp"

#include "trireme/backend/registry.hpp"
#include "trireme/comm/world.hpp"
#include "trireme/data/formats.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/train/worker.hpp"

namespace trireme::train {
namespace {

record::Pipeline pipeline_of(const PipelineConfig& config, const std::vector<std::string>& cuts) {
  record::Pipeline pipeline;
  pipeline.parallel = config.text();
  if (!config.is_used()) return pipeline;
  const bool has_cuts = default_chunks(config.kind) == 1;  // otherwise the schedule makes its own
  for (std::size_t stage = 0; stage < config.replicas.size(); ++stage)
    pipeline.stages.push_back(
        {.begins_at = has_cuts && stage > 0 ? cuts.at(stage - 1) : "", .replicas = config.replicas[stage]});
  pipeline.micro_batches = config.micro_batches;
  pipeline.schedule = to_string(config.kind);
  return pipeline;
}

}  // namespace

Json build_facts() {
  const perf::BuildInfo info = perf::build_info();
  Json libraries = Json::object();
  for (const auto& [name, version] : library_versions()) libraries[name] = version;
  for (const auto& [name, version] : comm::transport_versions()) libraries[name] = version;
  for (const auto& [name, version] : data::library_versions()) libraries[name] = version;
  for (const auto& [name, version] : info.libraries) libraries[name] = version;
  return {{"version", info.version},
          {"git", info.git},
          {"compiler", info.compiler},
          {"build_type", info.build_type},
          {"libraries", std::move(libraries)}};
}

record::Machine this_machine() { return record::Machine(perf::read_machine()); }
record::Machine this_machine(double load) { return record::Machine(perf::read_machine(load)); }

std::optional<record::Pipeline> pipeline_of(const WorkerSetup& setup, const StepConfig& config) {
  if (!config.distribution.pipeline.is_used()) return std::nullopt;
  record::Pipeline pipeline = pipeline_of(config.distribution.pipeline, setup.cuts);
  for (std::size_t cut = 0; cut < setup.cuts.size(); ++cut)
    pipeline.cuts.push_back({.at = setup.cuts[cut], .bytes_per_step = setup.cut_bytes.at(cut)});
  return pipeline;
}

std::vector<record::ParallelPlan> plans_of(const WorkerSetup& setup, const StepConfig& config) {
  std::vector<record::ParallelPlan> plans;
  for (const ParallelPlan& plan : setup.parallel.plans) {
    record::ParallelPlan& added = plans.emplace_back();
    static_cast<record::Pipeline&>(added) = pipeline_of(plan.pipeline, plan.pipeline.cuts);
    added.images_per_second = static_cast<double>(config.global_batch_size()) / plan.seconds;
    added.idle_share = plan.idle_share;
    added.memory_bytes = plan.memory;
    if (plan.recompute != Recompute::none) added.recompute = to_string(plan.recompute);
    added.problem = plan.problem;
    added.chosen = &plan == &setup.parallel.plans[setup.parallel.chosen];
  }
  return plans;
}

}  // namespace trireme::train
