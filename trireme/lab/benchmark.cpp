#include "trireme/lab/benchmark.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>

#include "trireme/backend/registry.hpp"
#include "trireme/base/error.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::lab {
namespace {

using SteadyClock = std::chrono::steady_clock;

// With a limit on time, warm-up may take this share of it.
constexpr double kWarmupShare = 0.25;
constexpr std::int64_t kReserveAtMost = 1 << 20;

double seconds_between(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

bool has_batch_norm(const Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(),
                     [](const Node& node) { return node.as<op::BatchNorm>() != nullptr; });
}

}  // namespace

TuningOptions tuning_options(const BenchmarkConfig& config, const std::string& cpu, std::function<void()> on_first) {
  TuningOptions options;
  options.autotune = config.autotune;
  options.exact = config.exact;
  options.cpu = cpu;
  options.cache = std::make_shared<TuneCache>(config.autotune == Autotune::off ? "" : config.tune_cache);
  options.on_first = std::move(on_first);
  return options;
}

std::string keep_timings(TuneCache& cache) {
  try {
    cache.save();
  } catch (const Error& error) {  // the work can go on: all that is lost is a second or two at the next start
    return fmt::format("{}; kernels will be timed again next time (--tune-cache chooses another file)", error.what());
  }
  return "";
}

struct Benchmark::Clock {
  SteadyClock::time_point start = SteadyClock::now();
  double limit_seconds = 0;  // 0: none

  double elapsed() const { return seconds_between(start, SteadyClock::now()); }
  bool past(double share) const { return limit_seconds > 0 && elapsed() >= share * limit_seconds; }
};

Benchmark::Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning) {
  setup_.config = config;
  const perf::Machine machine = perf::read_machine();
  setup_.warnings = machine.warnings;
  setup_.threads = perf::plan_threads(config.intra_threads, config.inter_threads, config.bind);
  setup_.config.intra_threads = setup_.threads.intra_threads;
  setup_.config.inter_threads = setup_.threads.inter_threads;
  // Before anything starts threads of its own: where the system refuses a processor, this is where it shows.
  measure_peak();
  const auto start = SteadyClock::now();
  const TuningOptions tuning = tuning_options(config, machine.cpu, std::move(on_tuning));
  divide_cores(tuning);
  build(tuning);
  setup_.prepare_seconds = seconds_between(start, SteadyClock::now());
}

void Benchmark::divide_cores(const TuningOptions& tuning) {
  BenchmarkConfig& config = setup_.config;
  const int threads = config.intra_threads;
  if (config.batch_split == 0) {
    const bool possible = config.inter_threads == 1 && make_backend(config.backend, {})->splits_batches();
    if (possible) setup_.split = choose_split(config, threads, tuning, setup_.peak);
    config.batch_split = setup_.split.groups;
  }
  if (threads % config.batch_split != 0) {
    bad_input("--batch-split {}: {} threads cannot be divided evenly over {} groups of cores; try {}",
              config.batch_split, threads, config.batch_split,
              fmt::join(possible_splits(threads, config.batch_size), ", "));
  }
  setup_.split.groups = config.batch_split;
  setup_.threads =
      perf::plan_threads(threads / config.batch_split, config.inter_threads, config.bind, config.batch_split);
}

void Benchmark::measure_peak() {
  // One team on the processors of all inter threads, started by a thread of its own: this thread's team stays as it is.
  perf::ThreadPlan all = setup_.threads;
  all.intra_threads = all.threads();
  all.inter_threads = all.groups = 1;
  const auto measure = [&all] {
    perf::apply(all);
    return perf::measure_fma_peak(all.intra_threads);
  };
  const perf::Peak peak = std::async(std::launch::async, measure).get();
  // A neighbour on the machine can only make it look smaller.
  if (peak.flops_per_second > setup_.peak.flops_per_second) setup_.peak = peak;
}

void Benchmark::build(const TuningOptions& tuning) {
  BenchmarkConfig& config = setup_.config;
  backend_ = make_backend(config.backend, tuning);
  step_ = std::make_unique<PreparedStep>(config, setup_.threads, *backend_);
  setup_.model = step_->model().info;
  config.num_classes = setup_.model.classes;
  setup_.counts = count(step_->graph(), step_->model());
  if (config.learning_rate_chosen) {
    config.schedule.initial =
        default_learning_rate(config.optimizer.kind, has_batch_norm(step_->graph()), setup_.counts.gradient_tensors);
  }
  setup_.kernels_timed = tuning.cache->added();
  setup_.tuning_seconds = tuning.cache->seconds_spent();
  if (const std::string problem = keep_timings(*tuning.cache); !problem.empty()) setup_.warnings.push_back(problem);
  setup_.memory = step_->memory();
  setup_.recomputation = step_->executable().program().recomputation;
  setup_.recomputation.planned_bytes_without *= step_->groups();
  setup_.flops_per_step = step_->flops();
}

double Benchmark::run_step() {
  const double loss = step_->run(setup_.config.schedule.at(steps_done_));
  ++steps_done_;
  return loss;
}

void Benchmark::check_finite(double loss) const {
  if (std::isfinite(loss)) return;
  if (!step_->trains())
    fail(ErrorKind::failed, "the loss of {} is {} in step {}", setup_.config.model, loss, steps_done_);
  fail(ErrorKind::failed,
       "the loss of {} became {} in step {} (warm-up included) at a learning rate of {}; "
       "try a lower --init-learning-rate or some --num-learning-rate-warmup-epochs",
       setup_.config.model, loss, steps_done_, setup_.config.schedule.at(steps_done_ - 1));
}

void Benchmark::warm_up(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock) {
  const std::int64_t steps = setup_.config.num_warmup_batches;
  while (result_.warmup_steps < steps && !stop.stop_requested()) {
    if (result_.warmup_steps > 0 && clock.past(kWarmupShare)) {
      result_.out_of_time = true;
      return;
    }
    const double loss = run_step();
    check_finite(loss);
    ++result_.warmup_steps;
    observer.on_warmup_step(
        {.step = result_.warmup_steps, .steps = steps, .loss = loss, .elapsed_seconds = clock.elapsed()});
  }
}

void Benchmark::run_repeat(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock,
                           std::int64_t repeat) {
  const BenchmarkConfig& config = setup_.config;
  // What warm-up has left of the time is divided evenly: this repeat may use it up to here.
  const double start_share = clock.limit_seconds > 0 ? clock.elapsed() / clock.limit_seconds : 0;
  const double end_share = start_share + std::max(0.0, 1 - start_share) / static_cast<double>(config.repeats - repeat);
  auto& seconds = result_.step_seconds.emplace_back();
  auto& losses = result_.losses.emplace_back();
  const auto expected = static_cast<std::size_t>(std::min(config.num_batches, kReserveAtMost));
  seconds.reserve(expected);
  losses.reserve(expected);

  for (std::int64_t done = 0; done < config.num_batches && !stop.stop_requested(); ++done) {
    if (done > 0 && clock.past(end_share)) {
      result_.out_of_time = true;
      return;
    }
    const auto start = SteadyClock::now();
    const double loss = run_step();
    seconds.push_back(seconds_between(start, SteadyClock::now()));
    losses.push_back(loss);
    check_finite(loss);
    observer.on_step({.repeat = repeat,
                      .step = done + 1,
                      .steps = config.num_batches,
                      .loss = loss,
                      .elapsed_seconds = clock.elapsed(),
                      .step_seconds = seconds});
  }
}

void Benchmark::run(BenchmarkObserver& observer, std::stop_token stop) {
  observer.on_start(setup_);
  const Clock clock{.limit_seconds = setup_.config.max_seconds};
  try {
    warm_up(observer, stop, clock);
    if (setup_.config.profile) step_->enable_profile();
    for (std::int64_t repeat = 0; repeat < setup_.config.repeats && !stop.stop_requested(); ++repeat) {
      run_repeat(observer, stop, clock, repeat);
    }
  } catch (...) {
    observer.on_end(setup_, result_);
    throw;
  }
  result_.interrupted = stop.stop_requested();
  measure_peak();
  observer.on_end(setup_, result_);
}

Throughput throughput(std::span<const double> step_seconds, std::int64_t batch_size) {
  if (step_seconds.empty()) return {};
  std::vector<double> speeds;
  speeds.reserve(step_seconds.size());
  for (const double seconds : step_seconds) speeds.push_back(static_cast<double>(batch_size) / seconds);
  return {.images_per_second = static_cast<double>(batch_size) / perf::summarize(step_seconds).mean,
          .uncertainty = perf::summarize(speeds).stderr_mean,
          .jitter = perf::jitter(speeds)};
}

std::vector<double> all_step_seconds(const BenchmarkResult& result) {
  std::vector<double> all;
  for (const auto& repeat : result.step_seconds) all.insert(all.end(), repeat.begin(), repeat.end());
  return all;
}

}  // namespace trireme::lab
