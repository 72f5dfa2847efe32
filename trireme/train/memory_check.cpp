#include "trireme/train/memory_check.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/train/step_graph.hpp"

namespace trireme::train {
namespace {

// A graph does not show the scratch memory of kernels.
constexpr double kSmallShare = 0.5;

double bytes_of(const TensorType& type) { return static_cast<double>(type.bytes()); }

// Batches prepared ahead, the one in use, and one being copied into the step.
void add_input(const StepConfig& config, MemoryNeed& need) {
  if (!config.data.is_real()) return;
  const Network& model = find_model(config.options.model);
  const auto pixels = static_cast<double>(model.channels * model.image_size * model.image_size);
  need.batches = static_cast<double>((config.data.prefetch + 1) * config.batch_size) * pixels * sizeof(float);
  need.cache = static_cast<double>(config.data.cache_bytes);
}

std::string parts_text(const MemoryNeed& need) {
  std::string text = fmt::format("activations and scratch {}, variables with gradients and optimizer state {}",
                                 format_bytes(need.activations), format_bytes(need.variables));
  if (need.batches > 0) text += fmt::format(", batches of input {}", format_bytes(need.batches));
  if (need.cache > 0) text += fmt::format(", --data-cache {}", format_bytes(need.cache));
  return text;
}

// The smallest pipeline that fits, beside programs that need this much; nothing if none does or the options exclude
// pipelines.
std::string pipeline_advice(const StepConfig& config, const HostMemory& memory, double beside) {
  using Limit = perf::FreeMemory::Limit;
  const double room = memory.of_each();
  const bool is_shared = memory.free.limit == Limit::machine || memory.free.limit == Limit::group;
  const DistributionConfig& distribution = config.distribution;
  const bool trains_alike = distribution.workers == 1 || distribution.update == VariableUpdate::all_reduce;
  if (config.options.forward_only || config.on_gpu() || distribution.uses_servers() || !trains_alike ||
      distribution.pipeline.is_used() || distribution.sync_batch_norm || config.precision == Precision::fp16 ||
      config.batch_split > 1 || config.inter_threads > 1) {
    return "";
  }
  constexpr std::array kStages{2, 4, 8};
  for (const int stages : kStages) {
    StepConfig other = config;
    other.distribution.workers = std::max(stages, distribution.workers);
    const std::int64_t images = config.global_batch_size();
    if (images % other.distribution.workers != 0 || other.distribution.workers % stages != 0) continue;
    other.batch_size = images / other.distribution.workers;
    PipelineConfig& pipeline = other.distribution.pipeline;
    pipeline.replicas.assign(static_cast<std::size_t>(stages), other.distribution.workers / stages);
    try {
      divide_batch(pipeline, images);
      const double need = planned_memory(other).total() + beside;
      if (need > room) continue;
      const double growth = static_cast<double>(other.distribution.workers) / distribution.workers;
      return fmt::format("; {} workers{} with --batch-size {} --parallel {} need {} each", other.distribution.workers,
                         is_shared && need * growth > room ? " on more hosts" : "", other.batch_size, pipeline.text(),
                         format_bytes(need));
    } catch (const Error&) {
      return "";  // too few layers
    }
  }
  return "";
}

std::string advice(const MemoryNeed& need, const HostMemory& memory, const StepConfig& config, double beside) {
  const double fitting = std::floor(static_cast<double>(config.batch_size) *
                                    (memory.of_each() - need.variables - need.cache) / need.with_batch());
  std::string text =
      fitting >= 1 ? fmt::format("about {} images fit", format_count(fitting)) : "not even one image fits";
  if (!config.options.forward_only && config.recompute != Recompute::full)
    text += "; --recompute cheap or full uses less";
  return text + pipeline_advice(config, memory, beside);
}

// Upper bound, quick to compute: separate memory for every result of the graph.
MemoryNeed most_memory(const StepConfig& config) {
  Graph graph;
  build_step(graph, config);
  MemoryNeed need;
  // A stage keeps several micro-batches.
  const PipelineConfig& pipeline = config.distribution.pipeline;
  const double kept = pipeline.is_used() && !config.options.forward_only ? pipeline.micro_batches : 1;
  for (const Node& node : graph.nodes()) {
    const bool is_variable = node.as<op::Variable>() != nullptr;
    for (const TensorType& output : node.outputs) (is_variable ? need.variables : need.activations) += bytes_of(output);
  }
  need.activations *= kept;
  constexpr double kCopies = 2 + op::kMostStates;  // value, gradient and optimizer state
  if (!config.options.forward_only) need.variables *= kCopies;
  add_input(config, need);
  return need;
}

template <typename Of>
MemoryNeed sum(const std::vector<StepConfig>& programs, Of of) {
  MemoryNeed all;
  for (const StepConfig& program : programs) all += of(program);
  return all;
}

}  // namespace

std::vector<HostMemory> host_memories(comm::Communicator& workers, std::optional<double> per_worker) {
  workers.set_context("comparing the available memory");
  struct Own {
    perf::FreeMemory host;
    std::int64_t process = std::numeric_limits<std::int64_t>::max();
  };
  Own own{.host = perf::free_memory()};
  if (const auto left = perf::process_memory_left()) own.process = *left;
  const std::vector<Own> all = comm::all_gather_value(workers, own);
  std::map<int, HostMemory> by_node;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    const comm::Member& member = workers.members()[rank];
    const auto [node, is_new] = by_node.try_emplace(member.node, HostMemory{member.host, 0, all[rank].host});
    ++node->second.workers;
    if (all[rank].host.bytes < node->second.free.bytes) node->second.free = all[rank].host;
  }
  const auto limit = [](HostMemory& host, double bytes, perf::FreeMemory::Limit reason) {
    if (bytes * host.workers >= static_cast<double>(host.free.bytes)) return;
    host.free = {.bytes = static_cast<std::int64_t>(bytes) * host.workers, .swap_bytes = 0, .limit = reason};
  };
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    HostMemory& host = by_node.at(workers.members()[rank].node);
    limit(host, static_cast<double>(all[rank].process), perf::FreeMemory::Limit::process);
    if (per_worker) limit(host, *per_worker, perf::FreeMemory::Limit::user);
  }
  std::vector<HostMemory> hosts;
  for (auto& [node, memory] : by_node) hosts.push_back(std::move(memory));
  return hosts;
}

MemoryNeed planned_memory(const StepConfig& config) {
  Graph graph;
  const StepGraph step = build_step(graph, config);
  const auto backend = make_backend(config.backend, {});
  const PipelineConfig& pipeline = config.distribution.pipeline;
  const bool has_stages = pipeline.is_used() && !config.options.forward_only;
  MemoryNeed most;
  int rank = 0;
  for (int stage = 0; stage < (has_stages ? pipeline.stages() : 1); ++stage) {
    CompileOptions options = compile_options(config);
    if (has_stages) {
      options.stages = stage_options(pipeline, graph, step.fetches, *backend, rank);
      options.state_shards = config.distribution.state_shards(pipeline.replicas[static_cast<std::size_t>(stage)]);
      rank += pipeline.replicas[static_cast<std::size_t>(stage)];
    }
    VariableLayouts layouts;
    const MemorySummary memory = compile(graph, step.fetches, *backend, options, layouts).memory;
    MemoryNeed need;
    need.activations = static_cast<double>(memory.planned_bytes);
    need.variables = static_cast<double>(memory.variable_bytes + memory.gradient_bytes + memory.optimizer_bytes);
    const bool has_copies = has_stages || config.distribution.is_elastic();  // sums; in case of a loss
    if (has_copies) need.variables += static_cast<double>(memory.gradient_bytes);
    if (need.activations + need.variables > most.activations + most.variables) most = need;
  }
  add_input(config, most);
  return most;
}

MemoryNeed& MemoryNeed::operator+=(const MemoryNeed& other) {
  activations += other.activations;
  variables += other.variables;
  batches += other.batches;
  cache += other.cache;
  return *this;
}

std::vector<std::string> check_memory(const std::vector<StepConfig>& programs, const std::vector<HostMemory>& hosts) {
  const MemoryNeed most = sum(programs, most_memory);
  const bool is_small = std::ranges::all_of(hosts, [&](const HostMemory& memory) {
    return memory.workers * most.total() < kSmallShare * static_cast<double>(memory.free.bytes);
  });
  if (is_small) return {};
  const MemoryNeed beside = sum({programs.begin() + 1, programs.end()}, planned_memory);
  MemoryNeed need = planned_memory(programs.front());
  need += beside;
  std::vector<std::string> warnings;
  for (const HostMemory& memory : hosts) {
    if (std::string warning = check_memory(need, memory, programs.front(), beside.total()); !warning.empty()) {
      warnings.push_back(std::move(warning));
    }
  }
  return warnings;
}

std::string check_memory(const MemoryNeed& need, const HostMemory& memory, const StepConfig& step, double beside) {
  constexpr std::array<std::string_view, 4> kLimits{"", " under the limit of the control group (cgroup)",
                                                    " under `ulimit`", " under --memory-limit"};
  const auto limit = static_cast<std::size_t>(memory.free.limit);
  if (memory.free.bytes <= 0 && limit == 0) return "";  // the system does not say
  const double all = memory.workers * need.total();
  const auto free = static_cast<double>(memory.free.bytes);
  if (all <= free) return "";
  const bool is_alone = memory.workers == 1;
  const std::string who = is_alone ? "" : fmt::format(" for each of {} workers on {}", memory.workers, memory.host);
  const std::string needed = fmt::format("--batch-size {}: {} of memory is needed{} ({}), but {} is available{}{}",
                                         step.batch_size, format_bytes(need.total()), who, parts_text(need),
                                         format_bytes(memory.of_each()), is_alone ? "" : " for each", kLimits[limit]);
  const std::string better = advice(need, memory, step, beside);
  if (all <= free + static_cast<double>(memory.free.swap_bytes)) {
    return fmt::format("{}: the rest will be swapped to disk, which is slow; {}", needed, better);
  }
  bad_input("{}; {}", needed, better);
}

}  // namespace trireme::train
