#include "trireme/train/choose_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <map>
#include <optional>

#include "trireme/backend/registry.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/measure_links.hpp"
#include "trireme/train/prepared_step.hpp"

namespace trireme::train {
namespace {

// Timed steps may take this long, and this share of the memory.
constexpr double kStepSeconds = 1.5, kTrialShare = 0.6;
constexpr double kTimedSeconds = 0.5;
constexpr int kLeastSteps = 2;
// Plans are made for this share of the memory at first: their memory is estimated, then computed.
constexpr std::array<double, 3> kPlanningShares{1.2, 0.8, 0.5};
constexpr std::size_t kMostShown = 8;

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

class Chooser {
 public:
  Chooser(const ParallelMeasurement& measurement, comm::Communicator& workers)
      : measurement_(measurement), config_(measurement.config), workers_(workers) {
    memory_ = std::numeric_limits<double>::max();
    for (const HostMemory& host : measurement.hosts) memory_ = std::min(memory_, host.of_each());
  }

  ParallelChoice run() {
    measure_network();
    choice_.links = comm::measure_links(workers_);
    std::string problem, chosen;
    if (workers_.rank() == 0) {
      try {
        choose();
        chosen = text_of_choice();
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::bad_input) throw;
        problem = error.what();
      }
    }
    workers_.set_context("waiting for rank 0 to choose --parallel");
    workers_.set_timeout(comm::Communicator::kUnevenTimeout);
    problem = comm::broadcast_text(workers_, problem);
    if (!problem.empty()) bad_input("{}", problem);
    chosen = comm::broadcast_text(workers_, chosen);
    workers_.set_timeout(std::chrono::duration<double>(config_.distribution.comm_timeout));
    workers_.set_context("");
    if (workers_.rank() > 0) read_choice(Json::parse(chosen));
    return std::move(choice_);
  }

 private:
  // With one image, and with as many as time and memory allow up to the worker's batch: two at least.
  void measure_network() {
    choice_.is_timed = fits_everywhere(1);
    if (!choice_.is_timed) {
      const Trial small = estimate(1);
      return make_costs(small, estimate(2));
    }
    const Trial small = measure(1);
    std::int64_t more = std::max<std::int64_t>(2, config_.batch_size);
    const auto is_short = [&](std::int64_t images) {
      const auto count = static_cast<double>(images);
      return count * small.step_seconds <= kStepSeconds && count * small.planned_bytes <= kTrialShare * memory_;
    };
    while (more > 2 && !is_short(more)) more = (more + 1) / 2;
    make_costs(small, fits_everywhere(more) ? measure(more) : doubled(small));
  }

  // Collective: workers with other processors may need other memory.
  bool fits_everywhere(std::int64_t images) {
    char fits = 1;
    try {
      check_memory(
          {alone(config_, images)},
          {{.host = workers_.self().host, .workers = 1, .free = {.bytes = static_cast<std::int64_t>(memory_)}}});
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::bad_input) throw;
      fits = 0;
    }
    return std::ranges::count(comm::all_gather_value(workers_, fits), 0) == 0;
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
      costs_.layers.push_back({.begins_at = i == 0 ? "" : cuts_[i - 1],
                               .forward = cost(3 * i),
                               .backward = cost(3 * i + 1),
                               .weights = cost(3 * i + 2),
                               .crossing = static_cast<double>(work.crossing_bytes) / images,
                               .kept = kept_share * static_cast<double>(work.kept_bytes) / images,
                               .variables = static_cast<double>(work.variable_bytes)});
      variables += costs_.layers.back().variables;
    }
    costs_.update = large.seconds.back() / variables;
    const MemorySummary& memory = large.memory;
    const auto all = static_cast<double>(memory.variable_bytes + 2 * memory.gradient_bytes + memory.optimizer_bytes);
    costs_.copies = memory.variable_bytes > 0 ? all / variables : 4;
  }

  JobCosts job_costs(double memory_share) const {
    JobCosts job;
    for (const comm::Member& member : workers_.members()) job.nodes.push_back(member.node);
    job.links = choice_.links;
    job.memory = memory_share * memory_;
    job.images = config_.global_batch_size();
    double gradients = 0;
    for (const Layer& layer : costs_.layers) gradients += layer.variables;
    job.bucket_bytes = bucket_bytes_for(config_.distribution, static_cast<std::int64_t>(gradients));
    job.overlap = config_.distribution.overlap;
    return job;
  }

  // Exactly, by compiling it.
  void check(ParallelPlan& plan) const {
    StepConfig config = config_;
    config.distribution.pipeline = plan.pipeline;
    MemoryNeed need = planned_memory(config);
    for (const StepConfig& program : measurement_.beside) need += planned_memory(program);
    plan.memory = need.total();
    if (plan.memory > memory_) plan.problem = fmt::format("needs {} of memory", format_bytes(plan.memory));
  }

  void choose() {
    std::vector<ParallelPlan>& plans = choice_.plans;
    std::optional<std::size_t> chosen;
    for (const double share : kPlanningShares) {
      for (ParallelPlan& plan : make_plans(costs_, job_costs(share))) {
        const auto is_same = [&](const ParallelPlan& other) {
          return other.pipeline.replicas == plan.pipeline.replicas && other.pipeline.cuts == plan.pipeline.cuts &&
                 other.pipeline.micro_batches == plan.pipeline.micro_batches &&
                 other.pipeline.kind == plan.pipeline.kind;
        };
        if (std::ranges::any_of(plans, is_same)) continue;
        const bool may_be_best = !chosen || plan.seconds < plans[*chosen].seconds;
        if (may_be_best) check(plan);
        plans.push_back(std::move(plan));
        if (may_be_best && plans.back().problem.empty()) chosen = plans.size() - 1;
      }
      if (chosen) break;
    }
    if (!chosen) {
      const auto least = std::ranges::min_element(plans, {}, &ParallelPlan::memory);
      bad_input(
          "--parallel auto: no plan fits the {} that each of {} workers may use; {} would need {}. Use more "
          "workers or a smaller --batch-size",
          format_bytes(memory_), workers_.size(),
          least->pipeline.is_used() ? least->pipeline.text() : "data parallelism", format_bytes(least->memory));
    }
    choice_.chosen = *chosen;
    while (plans.size() > kMostShown && choice_.chosen < plans.size() - 1) plans.pop_back();
  }

  static Json to_json(const ParallelPlan& plan) {
    return {{"replicas", plan.pipeline.replicas},
            {"cuts", plan.pipeline.cuts},
            {"micro_batches", plan.pipeline.micro_batches},
            {"kind", to_string(plan.pipeline.kind)},
            {"seconds", plan.seconds},
            {"memory", plan.memory},
            {"idle_share", plan.idle_share},
            {"problem", plan.problem}};
  }
  std::string text_of_choice() const {
    Json plans = Json::array();
    for (const ParallelPlan& plan : choice_.plans) plans.push_back(to_json(plan));
    return Json{{"plans", plans}, {"chosen", choice_.chosen}}.dump();
  }
  void read_choice(const Json& json) {
    choice_.chosen = json["chosen"];
    for (const Json& plan : json["plans"]) {
      ParallelPlan& read = choice_.plans.emplace_back();
      read.pipeline.replicas = plan["replicas"].get<std::vector<int>>();
      read.pipeline.cuts = plan["cuts"].get<std::vector<std::string>>();
      read.pipeline.micro_batches = plan["micro_batches"];
      read.pipeline.kind = *find_pipeline_kind(plan["kind"].get<std::string>());
      read.seconds = plan["seconds"];
      read.memory = plan["memory"];
      read.idle_share = plan["idle_share"];
      read.problem = plan["problem"];
    }
  }

  const ParallelMeasurement& measurement_;
  const StepConfig& config_;
  comm::Communicator& workers_;
  double memory_ = 0;  // that a worker may use
  NetworkCosts costs_;
  std::vector<std::string> cuts_;
  std::vector<PartWork> work_;
  ParallelChoice choice_;
};

}  // namespace

ParallelChoice choose_parallel(const ParallelMeasurement& measurement, comm::Communicator& workers) {
  return Chooser(measurement, workers).run();
}

}  // namespace trireme::train
