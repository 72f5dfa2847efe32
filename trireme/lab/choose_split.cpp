#include "trireme/lab/choose_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>

#include "trireme/backend/registry.hpp"
#include "trireme/lab/prepared_step.hpp"

namespace trireme::lab {
namespace {

using Clock = std::chrono::steady_clock;

// Steps of a trial should take no longer than this; where the batch is too large for that, a part of it is tried.
constexpr double kTrialStepSeconds = 2;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// All that the time of a step depends on, beside what is the same for all splits.
std::string problem_text(const BenchmarkConfig& config, int threads, const TuningOptions& tuning) {
  return fmt::format("{} | {} | {} threads{} | {} of {} x {}, {} classes{}{} | {}{}{}{}{}", tuning.cpu, config.backend,
                     threads, config.bind ? "" : " unbound", config.forward_only ? "forward" : "training step",
                     config.batch_size, config.model, config.num_classes, config.aux_head ? ", aux head" : "",
                     config.dropout ? "" : ", no dropout", to_string(config.data_format), config.exact ? ", exact" : "",
                     config.batch_norm_over == BatchNormOver::group ? ", own statistics" : "",
                     config.recompute == Recompute::none ? "" : ", recompute",
                     config.autotune == Autotune::full ? " | full" : "");
}

// Halves of the batch, as long as every split can divide it, until a step is short enough.
std::int64_t trial_batch(const BenchmarkConfig& config, int most_groups, double step_seconds) {
  std::int64_t batch = config.batch_size;
  while (step_seconds > kTrialStepSeconds && batch % 2 == 0 && batch / 2 % most_groups == 0) {
    batch /= 2;
    step_seconds /= 2;
  }
  return batch;
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
  Trials(const BenchmarkConfig& config, int threads, const TuningOptions& tuning, double peak)
      : config_(config), threads_(threads), peak_(peak), steps_(config.autotune == Autotune::full ? 5 : 2) {
    TuningOptions of_trials = tuning;
    backend_ = make_backend(config.backend, of_trials);
  }

  // On a thread of its own: the team of this one stays as it is.
  double seconds(int groups, int most_groups) {
    return std::async(std::launch::async, [&] { return measure(groups, most_groups); }).get();
  }

 private:
  double measure(int groups, int most_groups) {
    const perf::ThreadPlan plan = perf::plan_threads(threads_ / groups, 1, config_.bind, groups);
    auto step = std::make_unique<PreparedStep>(config_, plan, *backend_);
    BenchmarkConfig smaller = config_;
    smaller.batch_size = trial_batch(config_, most_groups, step->flops() / peak_);
    if (smaller.batch_size != config_.batch_size) {
      step.reset();
      step = std::make_unique<PreparedStep>(smaller, plan, *backend_);
    }
    return best_step(*step, steps_);
  }

  const BenchmarkConfig& config_;
  int threads_;
  double peak_;
  int steps_;
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
  Trials trials(config, threads, tuning, peak.flops_per_second);
  SplitChoice choice;
  double best = 0;
  for (const int groups : splits) {
    const std::string name = fmt::format("{} groups", groups);
    auto seconds = tuning.cache->find(problem, name);
    if (!seconds) {
      if (tuning.on_first && tuning.cache->added() == 0) tuning.on_first();
      const auto start = Clock::now();
      const double spent = tuning.cache->seconds_spent();
      seconds = trials.seconds(groups, splits.back());
      // Kernels that were timed on the way have been counted.
      tuning.cache->add(problem, name, *seconds, since(start) - (tuning.cache->seconds_spent() - spent));
    }
    choice.trials.push_back({groups, *seconds});
    if (groups == 1 || *seconds < best) {
      best = *seconds;
      choice.groups = groups;
    }
  }
  return choice;
}

}  // namespace trireme::lab
