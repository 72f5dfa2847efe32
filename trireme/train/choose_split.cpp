#include "trireme/train/choose_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <limits>
#include <optional>
#include <utility>

#include "trireme/backend/registry.hpp"
#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/train/prepared_step.hpp"

namespace trireme::train {
namespace {

// Maximum duration of a trial step; larger batches are tried in part.
constexpr double kTrialStepSeconds = 1;
// Short steps are repeated for this long.
constexpr double kTrialSeconds = 0.3;
constexpr std::int64_t kTrialImages = 2;  // per group, at least: a single image is not representative
// Groups need more memory: a gain within the noise is not worth it.
constexpr double kWorthwhile = 1.02;
// Splits within this factor of the fastest are tried again.
constexpr double kInTheRunning = 1.1;
// Trials may use this share of the free memory.
constexpr double kMemoryShare = 0.6;

// Everything a step's speed depends on.
std::string problem_text(const StepConfig& config, int threads, const TuningOptions& tuning) {
  return fmt::format(
      "{} | {} of build {} | {} threads{} | {} of {} x {}, {} classes{}{}, {} | {} {}{}, recompute {}, batch norm over "
      "{}{}",
      tuning.cpu, config.backend, perf::build_info().git, threads, config.options.bind ? "" : " unbound",
      config.options.forward_only ? "forward" : "training step", config.batch_size, config.options.model,
      config.num_classes, config.options.aux_head ? ", aux head" : "", config.options.no_dropout ? ", no dropout" : "",
      op::to_string(config.optimizer.kind), to_string(config.precision), to_string(config.data_format),
      config.options.exact ? ", exact" : "", to_string(config.recompute), to_string(config.batch_norm_over),
      config.autotune == Autotune::full ? " | full" : "");
}

// For a step over the whole batch.
double flops_of_step(const StepConfig& config) {
  Graph graph;
  build_step(graph, config, 1);
  double flops = 0;
  for (const Node& node : graph.nodes()) flops += cost(node).flops;
  return flops;
}

// Halves the batch until a step is short enough, as long as every split can divide it.
std::int64_t trial_batch(const StepConfig& config, int most_groups, double peak) {
  std::int64_t batch = config.batch_size;
  double seconds = flops_of_step(config) / peak;
  while (seconds > kTrialStepSeconds && batch % 2 == 0 && batch / 2 % most_groups == 0 &&
         batch / 2 / most_groups >= kTrialImages) {
    batch /= 2;
    seconds /= 2;
  }
  return batch;
}

class Trials {
 public:
  Trials(const StepConfig& config, int threads, std::int64_t batch, TuningOptions tuning)
      : config_(config), threads_(threads), batch_(batch) {
    tuning.on_first = {};  // already called
    backend_ = make_backend(config.backend, std::move(tuning));
  }

  // Two rounds, so that a slow moment of the machine does not decide; the second only for those that may be fastest.
  // One trial at a time: all at once would need more memory than the run.
  std::vector<SplitTrial> run(const std::vector<int>& splits) {
    std::vector<SplitTrial> trials;
    double best = 0;
    for (const int groups : splits) {
      const auto speed = this->speed(groups);
      if (!speed) continue;
      trials.push_back({groups, *speed});
      best = std::max(best, *speed);
    }
    const auto in_the_running = [&](const SplitTrial& trial) { return kInTheRunning * trial.images_per_second > best; };
    if (std::count_if(trials.begin(), trials.end(), in_the_running) < 2) return trials;
    for (SplitTrial& trial : trials) {
      if (!in_the_running(trial)) continue;
      trial.images_per_second = std::max(trial.images_per_second, speed(trial.groups).value_or(0));
    }
    return trials;
  }

 private:
  // Images per second; nothing for a split that fails or does not fit in memory.
  std::optional<double> speed(int groups) {
    try {
      // On a separate thread: this thread's team stays unchanged.
      return std::async(std::launch::async, [&] { return measure(groups); }).get();
    } catch (const Error&) {
      if (groups == 1) throw;  // the benchmark would fail too
      return std::nullopt;
    }
  }

  std::optional<double> measure(int groups) {
    if (groups > 1 && !fits(groups)) return std::nullopt;
    StepConfig config = config_;
    config.batch_size = batch_;
    PreparedStep step(config, perf::plan_threads(threads_ / groups, 1, config_.options.bind, groups), *backend_);
    if (groups == 1) whole_ = step.memory();
    const int least_steps = config_.autotune == Autotune::full ? 6 : 2;  // the first also touches the memory
    double best = std::numeric_limits<double>::max(), spent = 0;
    for (int i = 0; i < least_steps || spent < kTrialSeconds; ++i) {
      const auto start = SteadyClock::now();
      step.run(0);
      const double seconds = seconds_since(start);
      best = std::min(best, seconds);
      spent += seconds;
    }
    return static_cast<double>(batch_) / best;
  }

  // Whether the whole batch would fit, split like this.
  bool fits(int groups) const {
    const double parts = static_cast<double>(config_.batch_size) / static_cast<double>(batch_);
    const double bytes =
        parts * static_cast<double>(whole_.planned_bytes) + groups * static_cast<double>(whole_.gradient_bytes);
    return bytes < kMemoryShare * static_cast<double>(perf::free_memory().bytes);
  }

  const StepConfig& config_;
  int threads_;
  std::int64_t batch_;
  MemorySummary whole_;  // of the trial with one group, which comes first
  std::shared_ptr<Backend> backend_;
};

// Stored as seconds per image, like kernel times.
std::string kept_name(int groups) { return fmt::format("{} groups", groups); }

// Empty if not measured before. Missing splits were left out then.
std::vector<SplitTrial> kept_trials(const TuneCache& cache, const std::string& problem,
                                    const std::vector<int>& splits) {
  std::vector<SplitTrial> trials;
  for (const int groups : splits) {
    if (const auto seconds = cache.find(problem, kept_name(groups))) trials.push_back({groups, 1 / *seconds});
  }
  return trials;
}

std::vector<SplitTrial> run_trials(const StepConfig& config, int threads, const TuningOptions& tuning, double peak,
                                   const std::string& problem, const std::vector<int>& splits) {
  TuneCache& cache = *tuning.cache;
  if (tuning.on_first && cache.added() == 0) tuning.on_first();
  const auto start = SteadyClock::now();
  const double spent = cache.seconds_spent();
  std::vector<SplitTrial> trials =
      Trials(config, threads, trial_batch(config, splits.back(), peak), tuning).run(splits);
  // Kernel timings on the way are already counted.
  double seconds = seconds_since(start) - (cache.seconds_spent() - spent);
  for (const SplitTrial& trial : trials) {
    cache.add(problem, kept_name(trial.groups), 1 / trial.images_per_second, std::exchange(seconds, 0));
  }
  return trials;
}

}  // namespace

std::vector<int> possible_splits(int threads, std::int64_t batch_size) {
  std::vector<int> splits;
  for (int groups = 1; groups <= threads && groups <= batch_size; ++groups) {
    if (threads % groups == 0 && batch_size % groups == 0) splits.push_back(groups);
  }
  return splits;
}

int best_groups(const std::vector<SplitTrial>& trials) {
  double best = 0;
  for (const SplitTrial& trial : trials) best = std::max(best, trial.images_per_second);
  const auto found = std::find_if(trials.begin(), trials.end(), [&](const SplitTrial& trial) {
    return kWorthwhile * trial.images_per_second >= best;
  });
  return found->groups;
}

SplitChoice choose_split(const StepConfig& config, int threads, const TuningOptions& tuning, const perf::Peak& peak) {
  const std::vector<int> splits = possible_splits(threads, config.batch_size);
  if (config.autotune == Autotune::off || splits.size() < 2) return {};
  const std::string problem = problem_text(config, threads, tuning);
  SplitChoice choice;
  choice.trials = kept_trials(*tuning.cache, problem, splits);
  if (choice.trials.empty())
    choice.trials = run_trials(config, threads, tuning, peak.flops_per_second, problem, splits);
  choice.groups = best_groups(choice.trials);
  return choice;
}

}  // namespace trireme::train
