#include "trireme/train/parallel_planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "trireme/base/error.hpp"

namespace trireme::train {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr int kMostStages = 8;
// Neighboring layers are joined until so many are left: more cuts than that make no difference.
constexpr std::size_t kMostLayers = 48;
constexpr int kMostMicroBatchesPerWorker = 16;
// The schedule with fewer micro-batches in memory, unless the other is faster by more than the prediction's error.
constexpr double kWorthwhile = 1.02;

std::size_t index(int value) { return static_cast<std::size_t>(value); }

double compute_of(const Layer& layer, double images) {
  return layer.forward.of(images) + layer.backward.of(images) + layer.weights.of(images);
}

// Layers [begin, end) of a network as one.
Layer join(const std::vector<Layer>& layers, std::size_t begin, std::size_t end) {
  Layer all = layers[begin];
  for (std::size_t i = begin + 1; i < end; ++i) {
    for (LinearCost Layer::*cost : {&Layer::forward, &Layer::backward, &Layer::weights}) {
      (all.*cost).fixed += (layers[i].*cost).fixed;
      (all.*cost).per_image += (layers[i].*cost).per_image;
    }
    all.kept += layers[i].kept;
    all.variables += layers[i].variables;
  }
  all.crossing = layers[end - 1].crossing;
  return all;
}

// A stage ends where little crosses, if there is a choice.
std::vector<Layer> coarsened(const NetworkCosts& network) {
  const std::vector<Layer>& layers = network.layers;
  if (layers.size() <= kMostLayers) return layers;
  double all = 0;
  for (const Layer& layer : layers) all += compute_of(layer, 1);
  std::vector<Layer> joined;
  std::size_t begin = 0;
  double sum = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    sum += compute_of(layers[i], 1);
    const bool is_last = i + 1 == layers.size();
    // Among places that are about as good, the one with the least to send.
    const bool is_due = sum * static_cast<double>(kMostLayers) >= all;
    const bool is_better_later =
        !is_last && layers[i + 1].crossing < layers[i].crossing && sum * static_cast<double>(kMostLayers) < 2 * all;
    if (!is_last && (!is_due || is_better_later)) continue;
    joined.push_back(join(layers, begin, i + 1));
    begin = i + 1;
    sum = 0;
  }
  return joined;
}

// The ranks of a stage, which are numbered stage by stage.
struct Stage {
  int first_rank = 0;
  int workers = 1;
};

std::vector<Stage> stages_of(const std::vector<int>& replicas) {
  std::vector<Stage> stages;
  int rank = 0;
  for (const int workers : replicas) {
    stages.push_back({rank, workers});
    rank += workers;
  }
  return stages;
}

int most_per_node(const JobCosts& job, const Stage& stage) {
  std::map<int, int> of_node;
  int most = 0;
  for (int rank = stage.first_rank; rank < stage.first_rank + stage.workers; ++rank)
    most = std::max(most, ++of_node[job.nodes[index(rank)]]);
  return most;
}

comm::Layout layout_of(const JobCosts& job, const Stage& stage) {
  const auto first = job.nodes.begin() + stage.first_rank;
  std::vector<int> nodes(first, first + stage.workers);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return {.ranks = stage.workers,
          .nodes = static_cast<int>(std::ssize(nodes)),
          .most_ranks_per_node = most_per_node(job, stage)};
}

double all_reduce_seconds(const JobCosts& job, const Stage& stage, double bytes) {
  if (stage.workers == 1 || bytes <= 0) return 0;
  return comm::predicted_seconds(job.links, layout_of(job, stage), static_cast<std::int64_t>(bytes));
}

// Of one micro-batch's results between neighboring stages.
double transfer_seconds(const JobCosts& job, const Stage& from, const Stage& to, double bytes) {
  bool leaves_node = false;
  for (int a = from.first_rank; a < from.first_rank + from.workers; ++a) {
    for (int b = to.first_rank; b < to.first_rank + to.workers; ++b)
      leaves_node = leaves_node || job.nodes[index(a)] != job.nodes[index(b)];
  }
  const comm::LinkCost& link = leaves_node ? job.links.across : job.links.in_node;
  const int sharing = leaves_node ? std::max(most_per_node(job, from), most_per_node(job, to)) : 1;
  return link.latency_seconds + sharing * bytes / link.bytes_per_second;
}

// When a stage's variables are updated, after the backward of the last micro-batch, which ends at 0: buckets are summed
// one after the other as their gradients become complete.
double end_of_updates(const NetworkCosts& network, const JobCosts& job, const Stage& stage,
                      const std::vector<Layer>& layers, double images) {
  double now = 0, variables = 0;
  for (const Layer& layer : layers) {
    now -= layer.backward.of(images) + layer.weights.of(images);
    variables += layer.variables;
  }
  if (!job.overlap) now = 0;
  double bucket = 0, summed = now;
  for (std::size_t i = layers.size(); i-- > 0;) {
    if (job.overlap) now += layers[i].backward.of(images) + layers[i].weights.of(images);
    bucket += layers[i].variables;
    while (bucket >= static_cast<double>(job.bucket_bytes) || (i == 0 && bucket > 0)) {
      const double bytes = std::min(bucket, static_cast<double>(job.bucket_bytes));
      summed = std::max(summed, now) + all_reduce_seconds(job, stage, bytes);
      bucket -= bytes;
    }
  }
  return std::max(network.update * variables,
                  summed + network.update * std::min(variables, static_cast<double>(job.bucket_bytes)));
}

// Finds, for a number of micro-batches, the cuts and workers of each number of stages for which the busiest worker has
// least to do: from the last stage to the first.
class StageSearch {
 public:
  StageSearch(const NetworkCosts& network, const JobCosts& job, std::vector<Layer> layers, int micro_batches)
      : network_(network),
        job_(job),
        layers_(std::move(layers)),
        micro_batches_(micro_batches),
        images_(static_cast<double>(job.images) / micro_batches),
        workers_(static_cast<int>(std::ssize(job.nodes))),
        most_stages_(std::min({kMostStages, workers_, static_cast<int>(std::ssize(layers_))})) {
    for (int replicas = 1; replicas <= workers_; ++replicas) {
      if (micro_batches % replicas == 0) replicas_.push_back(replicas);
    }
    shares_link_ = most_per_node(job, {.first_rank = 0, .workers = workers_});
    leaves_node_ = shares_link_ < workers_;
    for (const Layer& layer : layers_) {
      Sums sums = sums_.back();
      sums.compute += compute_of(layer, images_);
      sums.backward += layer.backward.of(images_) + layer.weights.of(images_);
      sums.kept += layer.kept * images_;
      sums.variables += layer.variables;
      sums_.push_back(sums);
    }
    best_.assign(index(most_stages_ + 1) * index(workers_ + 1) * (layers_.size() + 1), {});
    at(0, 0, layers_.size()).cost = 0;
  }

  // One plan per number of stages, if there is any that fits.
  std::vector<PipelineConfig> run() {
    for (int stages = 1; stages <= most_stages_; ++stages) {
      for (std::size_t begin = layers_.size(); begin-- > 0;) {
        for (int workers = stages; workers <= workers_; ++workers) choose(stages, workers, begin);
      }
    }
    std::vector<PipelineConfig> plans;
    for (int stages = 1; stages <= most_stages_; ++stages) {
      if (at(stages, workers_, 0).cost < kNever) plans.push_back(plan(stages));
    }
    return plans;
  }

 private:
  struct Sums {  // of the layers before one
    double compute = 0, backward = 0, kept = 0, variables = 0;
  };
  struct Choice {
    double cost = kNever;  // seconds of the busiest worker
    std::size_t end = 0;   // of the first stage
    int replicas = 1;
  };
  Choice& at(int stages, int workers, std::size_t begin) {
    return best_[(index(stages) * index(workers_ + 1) + index(workers)) * (layers_.size() + 1) + begin];
  }

  void choose(int stages, int workers, std::size_t begin) {
    Choice& best = at(stages, workers, begin);
    for (const int replicas : replicas_) {
      if (replicas > workers) break;
      for (std::size_t end = begin + 1; end <= layers_.size(); ++end) {
        const double behind = at(stages - 1, workers - replicas, end).cost;
        if (behind >= best.cost) continue;
        const double cost = std::max(behind, cost_of(begin, end, replicas, workers));
        if (cost < best.cost) best = {cost, end, replicas};
      }
    }
  }

  double cost_of(std::size_t begin, std::size_t end, int replicas, int workers_from_here) const {
    const auto sum = [&](double Sums::*of) { return sums_[end].*of - sums_[begin].*of; };
    const double rounds = static_cast<double>(micro_batches_) / replicas;
    const double kept = std::min(rounds, std::ceil(static_cast<double>(workers_from_here) / replicas));
    const double variables = sum(&Sums::variables);
    if (job_.memory > 0 && sum(&Sums::kept) * kept + network_.copies * variables > job_.memory) return kNever;
    const double compute = rounds * sum(&Sums::compute) + network_.update * variables;
    const double arrives = begin == 0 ? 0 : layers_[begin - 1].crossing;
    const double bytes = rounds * images_ * std::max(arrives, layers_[end - 1].crossing);
    const double link = leaves_node_ ? shares_link_ * bytes / job_.links.across.bytes_per_second
                                     : bytes / job_.links.in_node.bytes_per_second;
    return std::max(compute, link) + std::max(0.0, sum_seconds(replicas, variables) - sum(&Sums::backward));
  }

  // Of an all-reduce, wherever the workers are: roughly.
  double sum_seconds(int replicas, double bytes) const {
    if (replicas == 1 || bytes <= 0) return 0;
    const comm::Layout layout{.ranks = replicas,
                              .nodes = leaves_node_ ? std::max(2, replicas / shares_link_) : 1,
                              .most_ranks_per_node = leaves_node_ ? shares_link_ : replicas};
    return comm::predicted_seconds(job_.links, layout, static_cast<std::int64_t>(bytes));
  }

  PipelineConfig plan(int stages) {
    PipelineConfig config{.replicas = {}, .cuts = {}, .micro_batches = micro_batches_};
    std::size_t begin = 0;
    for (int workers = workers_; stages > 0; --stages) {
      const Choice& choice = at(stages, workers, begin);
      if (begin > 0) config.cuts.push_back(layers_[begin].begins_at);
      config.replicas.push_back(choice.replicas);
      begin = choice.end;
      workers -= choice.replicas;
    }
    return config;
  }

  const NetworkCosts& network_;
  const JobCosts& job_;
  std::vector<Layer> layers_;
  int micro_batches_;
  double images_;  // of a micro-batch
  int workers_;
  int most_stages_;
  int shares_link_ = 1;  // workers on a host
  bool leaves_node_ = false;
  std::vector<int> replicas_;
  std::vector<Sums> sums_{{}};
  std::vector<Choice> best_;  // [stages, workers, first layer]: of the layers from there on
};

std::vector<int> numbers_of_micro_batches(const JobCosts& job) {
  if (job.micro_batches) return {*job.micro_batches};
  std::vector<int> numbers;
  const auto most = kMostMicroBatchesPerWorker * std::ssize(job.nodes);
  for (std::int64_t number = 2; number <= std::min<std::int64_t>(job.images, most); ++number) {
    if (job.images % number == 0 && job.images / number >= job.least_images)
      numbers.push_back(static_cast<int>(number));
  }
  return numbers;
}

bool may_use(const JobCosts& job, PipelineKind kind) { return !job.kind || *job.kind == kind; }

// Two parts for each stage, as even as they can be; nothing if there are too few layers or workers cannot be divided.
std::optional<PipelineConfig> interleaved_plan(const JobCosts& job, const std::vector<Layer>& layers, int stages,
                                               int micro_batches) {
  const auto workers = static_cast<int>(std::ssize(job.nodes));
  const int parts = stages * default_chunks(PipelineKind::interleaved);
  if (workers % stages != 0 || micro_batches % workers != 0 || std::ssize(layers) < parts) return std::nullopt;
  PipelineConfig plan{.replicas = std::vector(index(stages), workers / stages),
                      .micro_batches = micro_batches,
                      .kind = PipelineKind::interleaved};
  const double images = static_cast<double>(job.images) / micro_batches;
  double left = 0;
  for (const Layer& layer : layers) left += compute_of(layer, images);
  double part = 0;
  for (std::size_t i = 0; i + 1 < layers.size() && std::ssize(plan.cuts) + 1 < parts; ++i) {
    const double cost = compute_of(layers[i], images);
    part += cost;
    left -= cost;
    const auto parts_left = parts - static_cast<int>(std::ssize(plan.cuts));  // with this one
    const double goal = (part + left) / parts_left;
    const bool is_due = part + compute_of(layers[i + 1], images) / 2 > goal;
    const bool is_last_chance = static_cast<int>(layers.size() - i) <= parts_left;
    if (!is_due && !is_last_chance) continue;
    plan.cuts.push_back(layers[i + 1].begins_at);
    part = 0;
  }
  return plan;
}

}  // namespace

std::string ParallelPlan::text() const {
  if (recompute == Recompute::none) return pipeline.text();
  return fmt::format("{} with --recompute {}", pipeline.text(), to_string(recompute));
}

void predict(ParallelPlan& plan, const NetworkCosts& network, const JobCosts& job) {
  const auto workers = static_cast<int>(std::ssize(job.nodes));
  PipelineConfig& pipeline = plan.pipeline;
  const bool is_data = !pipeline.is_used();
  const std::vector<Stage> stages = stages_of(is_data ? std::vector<int>{workers} : pipeline.replicas);
  const int micro_batches = is_data ? workers : pipeline.micro_batches;
  const int chunks = default_chunks(pipeline.kind);
  const double images = static_cast<double>(job.images) / micro_batches;

  std::vector<std::vector<Layer>> parts(1);
  for (const Layer& layer : network.layers) {
    const std::size_t part = parts.size() - 1;
    if (part < pipeline.cuts.size() && layer.begins_at == pipeline.cuts[part]) parts.emplace_back();
    parts.back().push_back(layer);
  }
  if (parts.size() != stages.size() * index(chunks))
    fail(ErrorKind::failed, "a plan of {} stages has cuts for {} parts", stages.size(), parts.size());

  PipelineCosts costs;
  std::vector<std::vector<Layer>> layers(stages.size());  // of a stage
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const std::size_t s = p % stages.size();
    const Layer part = join(parts[p], 0, parts[p].size());
    costs.forward.push_back(part.forward.of(images));
    costs.backward.push_back(part.backward.of(images));
    costs.weights.push_back(part.weights.of(images));
    if (p + 1 < parts.size()) {
      costs.transfer.push_back(
          transfer_seconds(job, stages[s], stages[(p + 1) % stages.size()], part.crossing * images));
    }
    layers[s].insert(layers[s].end(), parts[p].begin(), parts[p].end());
  }
  const PipelineShape shape{.stages = static_cast<int>(std::ssize(stages)),
                            .micro_batches = micro_batches,
                            .chunks = chunks,
                            .replicas = is_data ? std::vector<int>{workers} : pipeline.replicas};
  pipeline.costs = {};
  PipelineTimes times = trireme::predict(make_pipeline_order(pipeline.kind, shape), costs);
  if (pipeline.kind == PipelineKind::zero_bubble) {  // a list of tasks: that of the measured costs is better, mostly
    PipelineTimes measured = trireme::predict(make_pipeline_order(pipeline.kind, shape, costs), costs);
    if (measured.total < times.total) {
      times = std::move(measured);
      pipeline.costs = costs;
    }
  }
  plan.seconds = plan.memory = 0;
  double busy = 0;
  for (std::size_t s = 0; s < stages.size(); ++s) {
    double end = 0;
    for (const PipelineTimes::Span& span : times.tasks[s]) end = std::max(end, span.end);
    plan.seconds = std::max(plan.seconds, end + end_of_updates(network, job, stages[s], layers[s], images));
    const Layer all = join(layers[s], 0, layers[s].size());
    plan.memory = std::max(plan.memory, all.kept * images * times.kept[s] / chunks + network.copies * all.variables);
    busy += times.busy[s] * stages[s].workers;
  }
  plan.idle_share = 1 - busy / (plan.seconds * workers);
}

std::vector<ParallelPlan> make_plans(const NetworkCosts& network, const JobCosts& job) {
  std::map<std::vector<int>, ParallelPlan> best;  // by the workers of each stage
  const std::vector<Layer> layers = coarsened(network);
  const auto workers = static_cast<int>(std::ssize(job.nodes));
  const auto consider = [&](PipelineConfig pipeline, PipelineKind kind) {
    pipeline.kind = kind;
    ParallelPlan plan{.pipeline = std::move(pipeline)};
    predict(plan, network, job);
    if (job.memory > 0 && plan.memory > job.memory) return;
    const auto [found, is_new] = best.try_emplace(plan.pipeline.replicas, plan);
    const double handicap = kind == PipelineKind::one_forward ? 1 : kWorthwhile;
    if (!is_new && plan.seconds * handicap < found->second.seconds) found->second = plan;
  };
  for (const int micro_batches : numbers_of_micro_batches(job)) {
    for (const PipelineConfig& pipeline : StageSearch(network, job, layers, micro_batches).run()) {
      const bool has_stages = pipeline.stages() > 1;
      if (!has_stages && micro_batches <= workers) continue;  // is data parallelism
      for (const PipelineKind kind : {PipelineKind::one_forward, PipelineKind::zero_bubble, PipelineKind::gpipe}) {
        if (has_stages ? may_use(job, kind) : kind == PipelineKind::one_forward) consider(pipeline, kind);
      }
    }
    for (int stages = 2; may_use(job, PipelineKind::interleaved) && stages <= std::min(kMostStages, workers);
         ++stages) {
      if (const auto plan = interleaved_plan(job, layers, stages, micro_batches)) consider(*plan, plan->kind);
    }
  }
  std::vector<ParallelPlan> plans(1);
  predict(plans.front(), network, job);
  for (auto& [replicas, plan] : best) plans.push_back(std::move(plan));
  std::stable_sort(plans.begin() + 1, plans.end(),
                   [](const ParallelPlan& a, const ParallelPlan& b) { return a.seconds < b.seconds; });
  return plans;
}

}  // namespace trireme::train
