#include "trireme/train/choose_parallel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <optional>
#include <utility>

#include "trireme/base/error.hpp"
#include "trireme/base/units.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/measure_links.hpp"
#include "trireme/train/measure_network.hpp"

namespace trireme::train {
namespace {

// If the fastest plan does not fit, others are made for these shares of the memory: the planner's figures are rough.
constexpr std::array<double, 3> kPlanningShares{1.2, 0.8, 0.5};
// By so much the rough figure may be too large: beyond that, a plan is not compiled.
constexpr double kHopeless = 2;
constexpr std::size_t kMostShown = 8;
// Statistics of fewer images make training with batch norm worse.
constexpr std::int64_t kLeastForBatchNorm = 8;

class Chooser {
 public:
  Chooser(const ParallelMeasurement& measurement, comm::Communicator& workers)
      : measurement_(measurement), config_(measurement.config), workers_(workers) {
    for (const HostMemory& host : measurement.hosts) {
      if (host.is_known()) memory_ = std::min(memory_.value_or(host.of_each()), host.of_each());
    }
  }

  ParallelChoice run() {
    network_ = measure_network(measurement_, memory_, workers_);
    choice_.is_timed = network_.is_timed;
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
  struct Candidate {
    ParallelPlan plan;
    bool is_checked = false;
    bool fits() const { return is_checked && plan.problem.empty(); }
  };

  JobCosts job_costs(double memory, bool any_micro_batch) const {
    JobCosts job;
    for (const comm::Member& member : workers_.members()) job.nodes.push_back(member.node);
    job.links = choice_.links;
    job.memory = memory;
    job.images = config_.global_batch_size();
    double gradients = 0;
    for (const Layer& layer : network_.costs.layers) gradients += layer.variables;
    job.bucket_bytes = bucket_bytes_for(config_.distribution, static_cast<std::int64_t>(gradients));
    job.overlap = config_.distribution.overlap;
    job.kind = find_pipeline_kind(config_.options.distribution.schedule);  // nothing: auto
    if (const int given = config_.distribution.pipeline.micro_batches; given > 0) job.micro_batches = given;
    if (!any_micro_batch) job.least_images = least_images();
    return job;
  }

  // That a plan may have in a micro-batch if there are others.
  std::int64_t least_images() const {
    const bool is_given = config_.distribution.pipeline.micro_batches > 0;
    return network_.has_batch_norm && !is_given ? std::min(kLeastForBatchNorm, config_.batch_size) : 1;
  }
  std::int64_t images_of_micro_batch(const ParallelPlan& plan) const {
    return plan.pipeline.is_used() ? config_.global_batch_size() / plan.pipeline.micro_batches : config_.batch_size;
  }

  // Plans that need no more memory than this by rough figures; 0: any.
  void add_plans(Recompute recompute, double memory, bool any_micro_batch = false) {
    const bool is_measured = recompute == config_.recompute;
    const NetworkCosts costs = is_measured ? network_.costs : with_recomputation(network_.costs, config_, recompute);
    for (ParallelPlan& plan : make_plans(costs, job_costs(memory, any_micro_batch))) {
      plan.recompute = recompute;
      const auto is_same = [&](const Candidate& other) {
        const PipelineConfig &a = other.plan.pipeline, &b = plan.pipeline;
        return other.plan.recompute == recompute && a.replicas == b.replicas && a.cuts == b.cuts &&
               a.micro_batches == b.micro_batches && a.kind == b.kind;
      };
      if (std::ranges::none_of(candidates_, is_same)) candidates_.push_back({.plan = std::move(plan)});
    }
    std::stable_sort(candidates_.begin() + 1, candidates_.end(),  // data parallelism stays first
                     [](const Candidate& a, const Candidate& b) { return a.plan.seconds < b.plan.seconds; });
  }

  // Exactly, by compiling it, unless it is clear.
  void check(Candidate& candidate) {
    if (std::exchange(candidate.is_checked, true)) return;
    ParallelPlan& plan = candidate.plan;
    MemoryUse use = measurement_.memory;
    use.step.distribution.pipeline = plan.pipeline;
    use.step.recompute = plan.recompute;
    if (fits_clearly(use, measurement_.hosts)) return;
    if (plan.memory > kHopeless * *memory_) {
      plan.problem = fmt::format("needs about {} of memory", format_bytes(plan.memory));
      return;
    }
    if (!beside_) beside_ = planned_beside(use);
    const std::vector<MemoryNeed> needs = planned_memory(use, *beside_);
    plan.memory = largest(needs).total();
    if (!std::ranges::all_of(measurement_.hosts, [&](const HostMemory& host) { return host.has_room_for(needs); }))
      plan.problem = fmt::format("needs {} of memory", format_bytes(plan.memory));
  }

  Candidate* fastest_that_fits() {
    std::vector<Candidate*> by_speed;
    for (Candidate& candidate : candidates_) by_speed.push_back(&candidate);
    std::ranges::stable_sort(by_speed, {}, [](const Candidate* candidate) { return candidate->plan.seconds; });
    for (Candidate* candidate : by_speed) {
      check(*candidate);
      if (candidate->fits()) return candidate;
    }
    return nullptr;
  }

  // What costs speed or changes training is tried only if memory asks for it.
  Candidate* find() {
    add_plans(config_.recompute, 0);
    if (Candidate* const found = fastest_that_fits()) {
      if (found == fastest()) return found;
    }
    for (const bool any_micro_batch : {false, true}) {
      for (const Recompute recompute : {Recompute::none, Recompute::cheap, Recompute::full}) {
        if (config_.recompute != Recompute::none && recompute != config_.recompute) continue;
        for (const double share : kPlanningShares) add_plans(recompute, share * *memory_, any_micro_batch);
      }
      if (Candidate* const found = fastest_that_fits()) return found;
    }
    return nullptr;
  }
  Candidate* fastest() {
    return &*std::ranges::min_element(candidates_, {}, [](const Candidate& each) { return each.plan.seconds; });
  }

  void choose() {
    const Candidate* const found = find();
    if (found == nullptr) {
      const ParallelPlan& least =
          std::ranges::min_element(candidates_, {}, [](const Candidate& each) { return each.plan.memory; })->plan;
      bad_input(
          "--parallel auto: no plan fits the {} that each of {} workers may use; {} would need {}. Use more "
          "workers or a smaller --batch-size",
          format_bytes(*memory_), workers_.size(), least.text(), format_bytes(least.memory));
    }
    if (const std::int64_t images = images_of_micro_batch(found->plan); images < least_images()) {
      choice_.warning = fmt::format(
          "--parallel auto: as nothing else fits the memory, batch norm has statistics of {} image{} at a time, which "
          "makes training worse",
          images, images == 1 ? "" : "s");
    }
    // Those that are shown or recorded without a problem can be run.
    auto chosen = static_cast<std::size_t>(found - candidates_.data());
    if (chosen >= kMostShown) {
      std::rotate(candidates_.begin() + kMostShown - 1, candidates_.begin() + static_cast<std::ptrdiff_t>(chosen),
                  candidates_.begin() + static_cast<std::ptrdiff_t>(chosen) + 1);
      chosen = kMostShown - 1;
    }
    candidates_.resize(std::min(candidates_.size(), kMostShown));
    choice_.chosen = chosen;
    for (Candidate& candidate : candidates_) {
      check(candidate);
      choice_.plans.push_back(std::move(candidate.plan));
    }
  }

  static Json to_json(const ParallelPlan& plan) {
    const PipelineConfig& pipeline = plan.pipeline;
    return {{"replicas", pipeline.replicas},
            {"cuts", pipeline.cuts},
            {"micro_batches", pipeline.micro_batches},
            {"kind", to_string(pipeline.kind)},
            {"forward", pipeline.costs.forward},
            {"backward", pipeline.costs.backward},
            {"weights", pipeline.costs.weights},
            {"transfer", pipeline.costs.transfer},
            {"recompute", static_cast<int>(plan.recompute)},
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
      plan["replicas"].get_to(read.pipeline.replicas);
      plan["cuts"].get_to(read.pipeline.cuts);
      plan["micro_batches"].get_to(read.pipeline.micro_batches);
      read.pipeline.kind = *find_pipeline_kind(plan["kind"].get<std::string>());
      plan["forward"].get_to(read.pipeline.costs.forward);
      plan["backward"].get_to(read.pipeline.costs.backward);
      plan["weights"].get_to(read.pipeline.costs.weights);
      plan["transfer"].get_to(read.pipeline.costs.transfer);
      read.recompute = static_cast<Recompute>(plan["recompute"].get<int>());
      plan["seconds"].get_to(read.seconds);
      plan["memory"].get_to(read.memory);
      plan["idle_share"].get_to(read.idle_share);
      plan["problem"].get_to(read.problem);
    }
  }

  const ParallelMeasurement& measurement_;
  const StepConfig& config_;
  comm::Communicator& workers_;
  std::optional<double> memory_;  // that a worker may use; nothing: no limit
  std::optional<MemoryNeed> beside_;
  MeasuredNetwork network_;
  std::vector<Candidate> candidates_;  // data parallelism first
  ParallelChoice choice_;
};

}  // namespace

ParallelChoice choose_parallel(const ParallelMeasurement& measurement, comm::Communicator& workers) {
  return Chooser(measurement, workers).run();
}

}  // namespace trireme::train
