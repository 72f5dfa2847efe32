#include "trireme/train/measure_network.hpp"

#include <algorithm>
#include <future>
#include <map>
#include <utility>

#include "trireme/backend/registry.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/train/choose_parallel.hpp"
#include "trireme/train/prepared_step.hpp"

namespace trireme::train {
namespace {

// Timed steps may take this long, and this share of the memory.
constexpr double kStepSeconds = 1.5, kTrialShare = 0.6;
constexpr double kTimedSeconds = 0.5;
constexpr int kLeastSteps = 2;

// This worker alone, with a micro-batch of this size.
StepConfig alone(const StepConfig& config, std::int64_t images) {
  StepConfig step = config;
  step.distribution = {};
  step.batch_size = images;
  return step;
}

// Seconds of layers and updates, one after the other, so that workers can exchange them.
using LayerSeconds = std::vector<double>;

struct Trial {
  std::int64_t images = 1;
  LayerSeconds seconds;
  MemorySummary memory;
  double step_seconds = 0, planned_bytes = 0;  // means of the workers
};

// What a program's instructions take, by the nodes of its graph. What is computed again counts as part of the backward
// operation that needs it.
std::map<std::string, double> node_seconds(const Executable& step, double& updates) {
  const Program& program = step.program();
  const Executable::Profile& profile = step.profile();
  std::map<std::string, double> seconds;
  updates = 0;
  double reads = 0;  // reorders and what is computed again, before the operation that reads it
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& instruction = program.instructions[i];
    const double each = profile.seconds[i] / static_cast<double>(profile.runs);
    if (instruction.update || instruction.once) {  // once per step, not per micro-batch
      updates += each;
    } else if (instruction.node == nullptr || instruction.recomputed) {
      reads += each;
    } else {
      seconds[instruction.node->name] += each + std::exchange(reads, 0);
    }
  }
  return seconds;
}

class NetworkMeasurement {
 public:
  NetworkMeasurement(const ParallelMeasurement& measurement, std::optional<double> memory, comm::Communicator& workers)
      : measurement_(measurement), config_(measurement.config), workers_(workers), memory_(memory) {}

  MeasuredNetwork run() {
    measure();
    return std::move(measured_);
  }

 private:
  // With one image, and with as many as time and memory allow up to the worker's batch: two at least.
  void measure() {
    measured_.is_timed = fits_everywhere(1);
    if (!measured_.is_timed) {
      const Trial small = estimate(1);
      return make_costs(small, estimate(2));
    }
    const Trial small = measure(1);
    std::int64_t more = std::max<std::int64_t>(2, config_.batch_size);
    const auto is_short = [&](std::int64_t images) {
      const auto count = static_cast<double>(images);
      const bool has_room = !memory_ || count * small.planned_bytes <= kTrialShare * *memory_;
      return count * small.step_seconds <= kStepSeconds && has_room;
    };
    while (more > 2 && !is_short(more)) more = (more + 1) / 2;
    make_costs(small, fits_everywhere(more) ? measure(more) : doubled(small));
  }

  // Collective: workers with other processors may need other memory.
  bool fits_everywhere(std::int64_t images) {
    const perf::FreeMemory free{.bytes = static_cast<std::int64_t>(memory_.value_or(0))};
    const bool fits_here = fits({.step = alone(config_, images)}, {{.host = workers_.self().host, .free = free}});
    return std::ranges::count(comm::all_gather_value(workers_, static_cast<char>(fits_here)), 0) == 0;
  }

  Trial measure(std::int64_t images) {
    const StepConfig step = alone(config_, images);
    Trial trial{.images = images, .seconds = {}, .memory = {}};
    const std::shared_ptr<Backend> backend = make_backend(config_.backend, measurement_.tuning);
    std::unique_ptr<PreparedStep> prepared;
    // In a thread of its own: this one's team stays as it is.
    std::async(std::launch::async, [&] {
      measurement_.compile_in_turn(
          [&] { prepared = std::make_unique<PreparedStep>(step, measurement_.threads, *backend); });
      prepared->run(0);
      prepared->enable_profile();
      comm::barrier(workers_);  // in steps, too, all are busy
      const auto start = SteadyClock::now();
      int runs = 0;
      for (; runs < kLeastSteps || seconds_since(start) < kTimedSeconds; ++runs) prepared->run(0);
      trial.step_seconds = seconds_since(start) / runs;
    }).get();
    trial.memory = prepared->memory();
    double updates = 0;
    const std::map<std::string, double> seconds = node_seconds(prepared->executable(), updates);
    trial.seconds = seconds_of_layers(images, [&](const Node& node) {
      const auto found = seconds.find(node.name);
      return found == seconds.end() ? 0 : found->second;
    });
    trial.seconds.push_back(updates);
    std::vector<double> others{trial.step_seconds, static_cast<double>(trial.memory.planned_bytes)};
    take_means(trial.seconds);
    take_means(others);
    trial.step_seconds = others[0];
    trial.planned_bytes = others[1];
    return trial;
  }

  Trial estimate(std::int64_t images) {
    Trial trial{.images = images, .seconds = seconds_of_layers(images, rough_seconds), .memory = {}};
    trial.seconds.push_back(0);
    return trial;
  }

  // If more than one image does not fit.
  Trial doubled(const Trial& small) {
    Trial trial = estimate(2);
    for (std::size_t i = 0; i + 1 < trial.seconds.size(); ++i) trial.seconds[i] = 2 * small.seconds[i];
    trial.seconds.back() = small.seconds.back();
    trial.memory = small.memory;
    trial.planned_bytes = 2 * small.planned_bytes;
    return trial;
  }

  // Forward, backward and weights of each layer.
  LayerSeconds seconds_of_layers(std::int64_t images, const std::function<double(const Node&)>& seconds) {
    Graph graph;
    const StepGraph step = build_step(graph, alone(config_, images));
    measured_.has_batch_norm =
        std::ranges::any_of(graph.nodes(), [](const Node& node) { return node.as<op::BatchNorm>() != nullptr; });
    const auto backend = make_backend(config_.backend, {});
    cuts_ = possible_cuts(graph, step.fetches, *backend);
    work_ = work_of_parts(graph, step.fetches, *backend, cuts_, seconds);
    LayerSeconds all;
    for (const PartWork& part : work_) all.insert(all.end(), {part.forward, part.backward, part.weights});
    return all;
  }

  void take_means(std::vector<double>& values) {
    std::vector<double> all(values.size() * static_cast<std::size_t>(workers_.size()));
    comm::all_gather(workers_, std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < values.size(); ++i) {
      double sum = 0;
      for (std::size_t rank = 0; rank < static_cast<std::size_t>(workers_.size()); ++rank)
        sum += all[rank * values.size() + i];
      values[i] = sum / workers_.size();
    }
  }

  // work_ and cuts_ are those of the larger trial.
  void make_costs(const Trial& small, const Trial& large) {
    const auto images = static_cast<double>(large.images);
    const auto cost = [&](std::size_t i) {
      const double slope = (large.seconds[i] - small.seconds[i]) / static_cast<double>(large.images - small.images);
      const double per_image = std::clamp(slope, 0.0, large.seconds[i] / images);
      return LinearCost{.fixed = large.seconds[i] - per_image * images, .per_image = per_image};
    };
    double variables = 0, kept = 0;
    for (const PartWork& work : work_) kept += static_cast<double>(work.kept_bytes);
    // What is computed again is not kept.
    const bool repeats = config_.recompute != Recompute::none && large.planned_bytes > 0 && kept > 0;
    const double kept_share = repeats ? std::min(1.0, large.planned_bytes / kept) : 1;
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const PartWork& work = work_[i];
      measured_.costs.layers.push_back({.begins_at = i == 0 ? "" : cuts_[i - 1],
                                        .forward = cost(3 * i),
                                        .backward = cost(3 * i + 1),
                                        .weights = cost(3 * i + 2),
                                        .crossing = static_cast<double>(work.crossing_bytes) / images,
                                        .kept = kept_share * static_cast<double>(work.kept_bytes) / images,
                                        .variables = static_cast<double>(work.variable_bytes)});
      variables += measured_.costs.layers.back().variables;
    }
    measured_.costs.update = large.seconds.back() / variables;
    const MemorySummary& memory = large.memory;
    const auto all = static_cast<double>(memory.variable_bytes + 2 * memory.gradient_bytes + memory.optimizer_bytes);
    measured_.costs.copies = memory.variable_bytes > 0 ? all / variables : 4;
  }

  const ParallelMeasurement& measurement_;
  const StepConfig& config_;
  comm::Communicator& workers_;
  std::optional<double> memory_;
  std::vector<std::string> cuts_;
  std::vector<PartWork> work_;
  MeasuredNetwork measured_;
};

}  // namespace

MeasuredNetwork measure_network(const ParallelMeasurement& measurement, std::optional<double> memory,
                                comm::Communicator& workers) {
  return NetworkMeasurement(measurement, memory, workers).run();
}

NetworkCosts with_recomputation(NetworkCosts costs, StepConfig config, Recompute recompute) {
  config.recompute = recompute;
  Graph graph;
  const StepGraph step = build_step(graph, alone(config, 2));
  const auto backend = make_backend(config.backend, {});
  VariableLayouts layouts;
  const Program program = compile(graph, step.fetches, *backend, compile_options(config), layouts);
  double forward = 0, again = 0;
  for (const Instruction& instruction : program.instructions) {
    const Node* const node = instruction.node;
    if (node == nullptr || instruction.once || instruction.update || is_backward(node->op)) continue;
    (instruction.recomputed ? again : forward) += rough_seconds(*node);
  }
  const double extra = forward > 0 ? again / forward : 0;
  const auto without = static_cast<double>(program.recomputation.planned_bytes_without);
  const double kept = without > 0 ? std::min(1.0, static_cast<double>(program.memory.planned_bytes) / without) : 1;
  for (Layer& layer : costs.layers) {
    layer.backward.fixed += extra * layer.forward.fixed;
    layer.backward.per_image += extra * layer.forward.per_image;
    layer.kept *= kept;
  }
  return costs;
}

}  // namespace trireme::train
