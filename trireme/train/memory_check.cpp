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

bool has_stages(const StepConfig& config) {
  return config.distribution.pipeline.is_used() && !config.options.forward_only;
}

// Batches prepared ahead, the one in use, and one being copied into the step.
void add_input(const StepConfig& config, MemoryNeed& need) {
  if (!config.data.is_real()) return;
  const Network& model = find_model(config.options.model);
  const auto pixels = static_cast<double>(model.channels * model.image_size * model.image_size);
  need.batches = static_cast<double>((config.data.prefetch + 1) * config.images_per_run()) * pixels * sizeof(float);
  need.cache = static_cast<double>(config.data.cache_bytes);
}

std::string parts_text(const MemoryNeed& need) {
  std::string text = fmt::format("activations and scratch {}, variables with gradients and optimizer state {}",
                                 format_bytes(need.activations), format_bytes(need.variables()));
  if (need.batches > 0) text += fmt::format(", batches of input {}", format_bytes(need.batches));
  if (need.cache > 0) text += fmt::format(", --data-cache {}", format_bytes(need.cache));
  if (need.copies > 0) text += fmt::format(", copies of variables to save or evaluate {}", format_bytes(need.copies));
  return text;
}

// Of the workers of a host.
MemoryNeed sum_of(const std::vector<MemoryNeed>& needs, const HostMemory& memory) {
  MemoryNeed sum;
  for (const int rank : memory.ranks) sum += needs.at(static_cast<std::size_t>(rank));
  return sum;
}

int largest_rank(const std::vector<MemoryNeed>& needs, const HostMemory& memory) {
  return *std::ranges::max_element(memory.ranks, {},
                                   [&](int rank) { return needs.at(static_cast<std::size_t>(rank)).total(); });
}

// Copies of values and state, at the moments of a step's life with most of them: for evaluation and checkpoints, the
// first worker brings together what the stages have; one checkpoint may still be written while the next is made.
void add_copies(const MemoryUse& use, std::vector<MemoryNeed>& needs) {
  const PipelineConfig& pipeline = use.step.distribution.pipeline;
  const bool is_pipeline = has_stages(use.step);
  double values = 0, state = 0;
  for (int rank = 0; rank < (is_pipeline ? std::ssize(needs) : 1); ++rank) {
    MemoryNeed& need = needs[static_cast<std::size_t>(rank)];
    const int replicas = is_pipeline ? pipeline.place_of(rank).replicas : use.step.distribution.workers;
    const double whole_state = need.state * use.step.distribution.state_shards(replicas);
    if (!is_pipeline || pipeline.place_of(rank).replica == 0) {
      values += need.values;
      state += whole_state;
    }
    if (is_pipeline) need.copies = use.saves ? need.values + whole_state : use.beside.empty() ? 0 : need.values;
  }
  if (use.saves) {
    needs.front().copies = 2 * (values + state);
  } else if (is_pipeline && !use.beside.empty()) {
    needs.front().copies = values;
  }
}

// Upper bound, quick to compute: separate memory for every result of the graph.
MemoryNeed most_memory(const StepConfig& config) {
  Graph graph;
  build_step(graph, config);
  MemoryNeed need;
  // A stage keeps several micro-batches.
  const double kept = has_stages(config) ? config.distribution.pipeline.micro_batches : 1;
  for (const Node& node : graph.nodes()) {
    const bool is_variable = node.as<op::Variable>() != nullptr;
    for (const TensorType& output : node.outputs) (is_variable ? need.values : need.activations) += bytes_of(output);
  }
  need.activations *= kept;
  if (!config.options.forward_only) {
    need.gradients = 2 * need.values;
    need.state = op::kMostStates * need.values;
  }
  add_input(config, need);
  return need;
}

// The same for every worker.
std::vector<MemoryNeed> most_memory(const MemoryUse& use) {
  MemoryNeed need = most_memory(use.step);
  if (use.saves || !use.beside.empty()) need.copies = 2 * (need.values + need.state);
  for (const StepConfig& program : use.beside) need += most_memory(program);
  return std::vector(static_cast<std::size_t>(use.step.distribution.workers), need);
}

// The smallest pipeline that fits; nothing if none does or the options exclude pipelines.
std::string pipeline_advice(const MemoryUse& use, const HostMemory& memory, const MemoryNeed& beside) {
  const StepConfig& config = use.step;
  const DistributionConfig& distribution = config.distribution;
  const bool trains_alike = distribution.workers == 1 || distribution.update == VariableUpdate::all_reduce;
  if (config.options.forward_only || config.on_gpu() || distribution.uses_servers() || !trains_alike ||
      distribution.pipeline.is_used() || distribution.sync_batch_norm || config.precision == Precision::fp16 ||
      config.batch_split > 1 || config.inter_threads > 1) {
    return "";
  }
  constexpr std::array kStages{2, 3, 4, 6, 8};
  for (const int stages : kStages) {
    MemoryUse other = use;
    int& workers = other.step.distribution.workers;
    workers = std::max(stages, distribution.workers);
    const std::int64_t images = config.global_batch_size();
    if (images % workers != 0 || workers % stages != 0) continue;
    other.step.batch_size = images / workers;
    PipelineConfig& pipeline = other.step.distribution.pipeline;
    pipeline.replicas.assign(static_cast<std::size_t>(stages), workers / stages);
    std::vector<MemoryNeed> needs;
    try {
      divide_batch(pipeline, images);
      needs = planned_memory(other, beside);
    } catch (const Error&) {
      continue;  // too few layers, or images that cannot be divided
    }
    const double need = largest(needs).total();
    if (need > memory.of_each()) continue;
    double all = 0;
    for (const MemoryNeed& each : needs) all += each.total();
    const bool needs_hosts = memory.is_shared() && all > memory.of_each() * distribution.workers;
    return fmt::format("; {} workers{} with --batch-size {} --parallel {} would fit: {} each", workers,
                       needs_hosts ? " on more hosts" : "", other.step.batch_size, pipeline.text(), format_bytes(need));
  }
  return "";
}

std::string advice(const std::vector<MemoryNeed>& needs, const HostMemory& memory, const MemoryUse& use,
                   const MemoryNeed& beside) {
  const bool is_shared = memory.is_shared();
  const MemoryNeed need =
      is_shared ? sum_of(needs, memory) : needs[static_cast<std::size_t>(largest_rank(needs, memory))];
  const double room = is_shared ? static_cast<double>(memory.free.bytes) : memory.of_each();
  const double fitting = std::floor(static_cast<double>(use.step.batch_size) *
                                    (room - (need.total() - need.with_batch())) / need.with_batch());
  std::string text =
      fitting >= 1 ? fmt::format("about {} images fit", format_count(fitting)) : "not even one image fits";
  if (!use.step.options.forward_only && use.step.recompute != Recompute::full)
    text += "; --recompute cheap or full uses less";
  return text + pipeline_advice(use, memory, beside);
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
    const auto [node, is_new] = by_node.try_emplace(member.node, HostMemory{member.host, {}, all[rank].host});
    node->second.ranks.push_back(static_cast<int>(rank));
    if (all[rank].host.bytes < node->second.free.bytes) node->second.free = all[rank].host;
  }
  const auto limit = [](HostMemory& host, double bytes, perf::FreeMemory::Limit reason) {
    if (host.is_known() && bytes * host.workers() >= static_cast<double>(host.free.bytes)) return;
    host.free = {.bytes = static_cast<std::int64_t>(bytes) * host.workers(), .swap_bytes = 0, .limit = reason};
  };
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    HostMemory& host = by_node.at(workers.members()[rank].node);
    if (const std::int64_t left = all[rank].process; left < std::numeric_limits<std::int64_t>::max()) {
      limit(host, static_cast<double>(left), perf::FreeMemory::Limit::process);
    }
    if (per_worker) limit(host, *per_worker, perf::FreeMemory::Limit::user);
  }
  std::vector<HostMemory> hosts;
  for (auto& [node, memory] : by_node) hosts.push_back(std::move(memory));
  return hosts;
}

bool HostMemory::is_known() const { return free.bytes > 0 || free.limit != perf::FreeMemory::Limit::machine; }

bool HostMemory::is_shared() const {
  using Limit = perf::FreeMemory::Limit;
  return free.limit == Limit::machine || free.limit == Limit::group;
}

bool HostMemory::has_room_for(const std::vector<MemoryNeed>& needs, bool with_swap) const {
  if (!is_known()) return true;
  const auto most = needs.at(static_cast<std::size_t>(largest_rank(needs, *this))).total() * workers();
  const auto room = static_cast<double>(free.bytes + (with_swap ? free.swap_bytes : 0));
  return (is_shared() ? sum_of(needs, *this).total() : most) <= room;
}

MemoryNeed need_of(const StepConfig& config, const MemorySummary& memory) {
  MemoryNeed need;
  need.activations = static_cast<double>(memory.planned_bytes);
  need.values = static_cast<double>(memory.variable_bytes);
  const bool has_copies = has_stages(config) || config.distribution.is_elastic();  // sums; in case of a loss
  need.gradients = static_cast<double>(memory.gradient_bytes) * (has_copies ? 2 : 1);
  need.state = static_cast<double>(memory.optimizer_bytes);
  add_input(config, need);
  return need;
}

MemoryNeed planned_beside(const MemoryUse& use) {
  MemoryNeed all;
  for (const StepConfig& program : use.beside) all += largest(planned_memory({.step = program}, {}));
  return all;
}

std::vector<MemoryNeed> planned_memory(const MemoryUse& use) { return planned_memory(use, planned_beside(use)); }

std::vector<MemoryNeed> planned_memory(const MemoryUse& use, const MemoryNeed& beside) {
  const StepConfig& config = use.step;
  const bool is_pipeline = has_stages(config);
  const PipelineConfig& pipeline = config.distribution.pipeline;
  const std::vector<int> workers = is_pipeline ? pipeline.replicas : std::vector{config.distribution.workers};
  Graph graph;
  const StepGraph step = build_step(graph, config);
  const auto backend = make_backend(config.backend, {});
  CompileOptions options = compile_options(config);
  options.state_shards = 1;
  if (is_pipeline) options.stages = stage_options(pipeline, graph, step.fetches, *backend, 0);
  const std::vector<MemorySummary> stages = memory_of_stages(graph, step.fetches, *backend, options);

  std::vector<MemoryNeed> needs;
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    MemoryNeed need = need_of(config, stages[stage]);
    need.state /= config.distribution.state_shards(workers[stage]);
    needs.insert(needs.end(), static_cast<std::size_t>(workers[stage]), need);
  }
  add_copies(use, needs);
  const bool in_all = use.beside_all && !is_pipeline;
  for (std::size_t rank = 0; rank < (in_all ? needs.size() : 1); ++rank) needs[rank] += beside;
  return needs;
}

const MemoryNeed& largest(const std::vector<MemoryNeed>& needs) {
  return *std::ranges::max_element(needs, {}, &MemoryNeed::total);
}

MemoryNeed& MemoryNeed::operator+=(const MemoryNeed& other) {
  for (double MemoryNeed::*part : {&MemoryNeed::activations, &MemoryNeed::values, &MemoryNeed::gradients,
                                   &MemoryNeed::state, &MemoryNeed::batches, &MemoryNeed::cache, &MemoryNeed::copies})
    this->*part += other.*part;
  return *this;
}

bool fits_clearly(const MemoryUse& use, const std::vector<HostMemory>& hosts) {
  const std::vector<MemoryNeed> most = most_memory(use);
  return std::ranges::all_of(hosts, [&](HostMemory memory) {
    memory.free.bytes = static_cast<std::int64_t>(kSmallShare * static_cast<double>(memory.free.bytes));
    return memory.has_room_for(most);
  });
}

bool fits(const MemoryUse& use, const std::vector<HostMemory>& hosts) {
  if (fits_clearly(use, hosts)) return true;
  const std::vector<MemoryNeed> needs = planned_memory(use);
  return std::ranges::all_of(hosts, [&](const HostMemory& memory) { return memory.has_room_for(needs); });
}

std::vector<std::string> check_memory(const MemoryUse& use, const std::vector<HostMemory>& hosts) {
  if (fits_clearly(use, hosts)) return {};
  const MemoryNeed beside = planned_beside(use);
  const std::vector<MemoryNeed> needs = planned_memory(use, beside);
  std::vector<std::string> warnings;
  for (const HostMemory& memory : hosts) {
    if (std::string warning = check_memory(needs, memory, use, beside); !warning.empty())
      warnings.push_back(std::move(warning));
  }
  return warnings;
}

std::string check_memory(const std::vector<MemoryNeed>& needs, const HostMemory& memory, const MemoryUse& use,
                         const MemoryNeed& beside) {
  if (memory.has_room_for(needs)) return "";
  constexpr std::array<std::string_view, 4> kLimits{"", " under the limit of the control group (cgroup)",
                                                    " under `ulimit`", " under --memory-limit"};
  const int rank = largest_rank(needs, memory);
  const MemoryNeed& most = needs[static_cast<std::size_t>(rank)];
  const bool are_alike = std::ranges::all_of(
      memory.ranks, [&](int each) { return needs[static_cast<std::size_t>(each)].total() == most.total(); });
  const bool is_alone = memory.workers() == 1;
  const double all = sum_of(needs, memory).total();
  const std::string whose = is_alone    ? ""
                            : are_alike ? fmt::format(" for each of {} workers on {}", memory.workers(), memory.host)
                                        : fmt::format(" for rank {} of the {} workers on {}, which need {} in all",
                                                      rank, memory.workers(), memory.host, format_bytes(all));
  const bool is_of_each = memory.workers() > 1 && (are_alike || !memory.is_shared());
  const std::string needed =
      fmt::format("--batch-size {}: {} of memory is needed{} ({}), but {} is available{}{}", use.step.batch_size,
                  format_bytes(most.total()), whose, parts_text(most),
                  format_bytes(is_of_each ? memory.of_each() : static_cast<double>(memory.free.bytes)),
                  is_of_each ? " for each" : "", kLimits.at(static_cast<std::size_t>(memory.free.limit)));
  const std::string better = advice(needs, memory, use, beside);
  if (memory.has_room_for(needs, true))
    return fmt::format("{}: the rest will be swapped to disk, which is slow; {}", needed, better);
  bad_input("{}; {}", needed, better);
}

}  // namespace trireme::train
