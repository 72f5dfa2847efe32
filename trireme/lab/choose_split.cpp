#include "trireme/lab/choose_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/lab/prepared_step.hpp"
#include "trireme/perf/build_info.hpp"
#include "trireme/perf/machine.hpp"

namespace trireme::lab {
namespace {

using Clock = std::chrono::steady_clock;

// Steps of a trial should take no longer than this; where the batch is too large for that, a part of it is tried.
constexpr double kTrialStepSeconds = 2;

// Groups need more memory: a gain within the noise is not worth it.
constexpr double kWorthwhile = 1.02;
// Trials may take this share of the memory that is free.
constexpr double kMemoryShare = 0.6;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// All that the speed of a step depends on.
std::string problem_text(const BenchmarkConfig& config, int threads, const TuningOptions& tuning) {
  return fmt::format(
      "{} | {} of build {} | {} threads{} | {} of {} x {}, {} classes{}{}, {} | {}{}, recompute {}, batch norm over "
      "{}{}",
      tuning.cpu, config.backend, perf::build_info().git, threads, config.bind ? "" : " unbound",
      config.forward_only ? "forward" : "training step", config.batch_size, config.model, config.num_classes,
      config.aux_head ? ", aux head" : "", config.dropout ? "" : ", no dropout", op::to_string(config.optimizer.kind),
      to_string(config.data_format), config.exact ? ", exact" : "", to_string(config.recompute),
      to_string(config.batch_norm_over), config.autotune == Autotune::full ? " | full" : "");
}

double best_step(PreparedStep& step, int steps) {
  step.run(0);  // touches the memory
  double best = 0;
  for (int i = 0; i < steps; ++i) {
    const auto start = Clock::now();
    step.run(0);
    const double seconds = since(start);
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

class Trials {
 public:
  Trials(const BenchmarkConfig& config, int threads, int most_groups, TuningOptions tuning, double peak)
      : config_(config), threads_(threads), most_groups_(most_groups), peak_(peak) {
    tuning.on_first = {};  // it has been called
    backend_ = make_backend(config.backend, std::move(tuning));
  }

  // Images per second; nothing for a split that this machine has no memory for or that fails.
  std::optional<double> speed(int groups) {
    try {
      // On a thread of its own: the team of this one stays as it is.
      return std::async(std::launch::async, [&] { return measure(groups); }).get();
    } catch (const Error&) {
      if (groups == 1) throw;  // so would the benchmark
      return std::nullopt;
    }
  }

 private:
  struct Whole {  // the batch in one group
    std::int64_t trial_batch = 0;
    double arena_bytes = 0, gradient_bytes = 0;
  };

  std::unique_ptr<PreparedStep> prepare(int groups, std::int64_t batch) const {
    BenchmarkConfig config = config_;
    config.batch_size = batch;
    return std::make_unique<PreparedStep>(config, perf::plan_threads(threads_ / groups, 1, config_.bind, groups),
                                          *backend_);
  }

  // Halves of the batch, as long as every split can divide it, until a step is short enough.
  std::int64_t trial_batch(double step_seconds) const {
    std::int64_t batch = config_.batch_size;
    while (step_seconds > kTrialStepSeconds && batch % 2 == 0 && batch / 2 % most_groups_ == 0) {
      batch /= 2;
      step_seconds /= 2;
    }
    return batch;
  }

  std::optional<double> measure(int groups) {
    std::unique_ptr<PreparedStep> step;
    if (whole_.trial_batch == 0) {
      step = prepare(1, config_.batch_size);
      whole_ = {trial_batch(step->flops() / peak_), static_cast<double>(step->memory().planned_bytes),
                static_cast<double>(step->memory().gradient_bytes)};
    }
    if (groups > 1 && whole_.arena_bytes + groups * whole_.gradient_bytes >
                          kMemoryShare * static_cast<double>(perf::read_machine().available_bytes)) {
      return std::nullopt;
    }
    if (!step || groups > 1 || whole_.trial_batch != config_.batch_size) {
      step.reset();  // before the next one takes memory
      step = prepare(groups, whole_.trial_batch);
    }
    const int steps = config_.autotune == Autotune::full ? 5 : 2;
    return static_cast<double>(whole_.trial_batch) / best_step(*step, steps);
  }

  const BenchmarkConfig& config_;
  int threads_, most_groups_;
  double peak_;
  Whole whole_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

std::vector<int> possible_splits(int threads, std::int64_t batch_size) {
  std::vector<int> splits;
  for (int groups = 1; groups <= threads && groups <= batch_size; ++groups) {
    if (threads % groups == 0 && batch_size % groups == 0) splits.push_back(groups);
  }
  return splits;
}

SplitChoice choose_split(const BenchmarkConfig& config, int threads, const TuningOptions& tuning,
                         const perf::Peak& peak) {
  const std::vector<int> splits = possible_splits(threads, config.batch_size);
  if (config.autotune == Autotune::off || splits.size() < 2) return {};
  const std::string problem = problem_text(config, threads, tuning);
  Trials trials(config, threads, splits.back(), tuning, peak.flops_per_second);
  SplitChoice choice;
  double best = 0;
  for (const int groups : splits) {
    const std::string name = fmt::format("{} groups", groups);
    // Kept as seconds per image, like the kernels' times.
    auto seconds = tuning.cache->find(problem, name);
    if (!seconds) {
      if (tuning.on_first && tuning.cache->added() == 0) tuning.on_first();
      const auto start = Clock::now();
      const double spent = tuning.cache->seconds_spent();
      const auto speed = trials.speed(groups);
      if (!speed) continue;
      seconds = 1 / *speed;
      // Kernels that were timed on the way have been counted.
      tuning.cache->add(problem, name, *seconds, since(start) - (tuning.cache->seconds_spent() - spent));
    }
    choice.trials.push_back({groups, 1 / *seconds});
    if (groups == 1 || choice.trials.back().images_per_second > kWorthwhile * best) {
      best = choice.trials.back().images_per_second;
      choice.groups = groups;
    }
  }
  return choice;
}

}  // namespace trireme::lab
