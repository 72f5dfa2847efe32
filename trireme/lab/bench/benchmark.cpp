#include "trireme/lab/bench/benchmark.hpp"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "trireme/base/clock.hpp"
#include "trireme/base/error.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/same_options.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::lab {
namespace {

// TRIREME_SLOW_RANK=1:20 makes every step of rank 1 take 20 ms longer, to test the reports about slow workers.
double slowness_of(int rank) {
  const char* text = std::getenv("TRIREME_SLOW_RANK");
  int slow = -1;
  double milliseconds = 0;
  if (text == nullptr) return 0;
  if (std::sscanf(text, "%d:%lf", &slow, &milliseconds) != 2 || !(milliseconds >= 0)) {
    bad_input("TRIREME_SLOW_RANK={}: must be a rank and milliseconds, such as 1:20", text);
  }
  return slow == rank ? milliseconds / 1e3 : 0;
}

// All workers of a group must time the same.
const BenchmarkConfig& checked(const BenchmarkConfig& config, comm::Communicator& workers) {
  if (workers.size() == 1) return config;
  workers.set_timeout(std::chrono::duration<double>(config.distribution.comm_timeout));
  train::check_same_options(workers, to_json(config));
  return config;
}

// With a time limit, warm-up may take this share of it.
constexpr double kWarmupShare = 0.25;
constexpr std::int64_t kReserveAtMost = 1 << 20;
// Votes are summed over all workers: an interrupt outweighs any number of votes on time.
constexpr float kInterruptVote = 1 << 20;

// Collective.
double sum_over(comm::Communicator& workers, double own) {
  const std::vector<double> all = comm::all_gather_value(workers, own);
  return std::accumulate(all.begin(), all.end(), 0.0);
}

}  // namespace

Benchmark::Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning)
    : Benchmark(config, comm::make_single(), std::move(on_tuning)) {}

Benchmark::Benchmark(const BenchmarkConfig& config, std::unique_ptr<comm::Communicator> alone,
                     std::function<void()> on_tuning)
    : Benchmark(config, train::ProcessGroup{*alone}, std::move(on_tuning)) {
  alone_ = std::move(alone);
}

Benchmark::Benchmark(const BenchmarkConfig& config, const train::ProcessGroup& group, std::function<void()> on_tuning,
                     perf::Recorder* recorder)
    : setup_{{}, checked(config, group.workers)},
      worker_(setup_.config, group, {.on_tuning = std::move(on_tuning), .recorder = recorder}),
      trace_(recorder),
      slow_seconds_(slowness_of(group.workers.rank())) {
  static_cast<train::WorkerSetup&>(setup_) = worker_.setup();
}

BenchmarkSetup setup_of(const train::Worker& worker) {
  BenchmarkSetup setup{worker.setup(), {}};
  static_cast<train::StepConfig&>(setup.config) = worker.config();
  return setup;
}

bool is_displayed(std::int64_t step, std::int64_t display_every) { return step == 1 || step % display_every == 0; }

Throughput throughput(std::span<const double> step_seconds, std::int64_t batch_size) {
  if (step_seconds.empty()) return {};
  std::vector<double> speeds;
  speeds.reserve(step_seconds.size());
  for (const double seconds : step_seconds) speeds.push_back(static_cast<double>(batch_size) / seconds);
  return {.images_per_second = static_cast<double>(batch_size) / perf::summarize(step_seconds).mean,
          .uncertainty = perf::summarize(speeds).stderr_mean,
          .jitter = perf::jitter(speeds)};
}

std::vector<double> InputCost::overheads() const {
  std::vector<double> percents;
  for (std::size_t i = 0; i < real.size(); ++i) percents.push_back(100 * (in_place[i] - real[i]) / in_place[i]);
  return percents;
}

std::vector<double> joined(const std::vector<std::vector<double>>& repeats) {
  std::vector<double> all;
  for (const auto& repeat : repeats) all.insert(all.end(), repeat.begin(), repeat.end());
  return all;
}

struct Benchmark::Clock {
  SteadyClock::time_point start = SteadyClock::now();
  double limit_seconds = 0;  // 0: none

  double elapsed() const { return seconds_since(start); }
  bool past(double share) const { return limit_seconds > 0 && elapsed() >= share * limit_seconds; }
};

double Benchmark::run_step() {
  if (slow_seconds_ > 0) std::this_thread::sleep_for(std::chrono::duration<double>(slow_seconds_));
  const double rate = config().schedule.at(static_cast<double>(steps_done_)) * worker_.share_of_workers();
  const double loss = worker_.run_step(rate, !keeps_batch_);
  worker_.end_update();
  ++steps_done_;
  return loss;
}

// Called before every step. Workers that train together must end after the same step: each vote travels with the
// gradients of the coming step and is known to all after it. `first` marks the first step of its kind: earlier votes
// were about time that is over.
Benchmark::End Benchmark::vote(End wish, bool first) {
  if (!worker_.in_lock_step()) return wish;
  const float all = worker_.replicas()->sync().agreed();
  const float agreed = first && all < kInterruptVote ? 0 : all;
  worker_.replicas()->sync().set_vote(wish == End::interrupted   ? kInterruptVote
                                      : wish == End::out_of_time ? 1.0f
                                                                 : 0.0f);
  return agreed >= kInterruptVote ? End::interrupted : agreed > 0 ? End::out_of_time : End::no;
}

bool Benchmark::ends(bool asked, bool out_of_time, bool first) {
  const End end = vote(asked ? End::interrupted : out_of_time ? End::out_of_time : End::no, first);
  result_.out_of_time = result_.out_of_time || end == End::out_of_time;
  result_.interrupted = end == End::interrupted;
  return end != End::no;
}

void Benchmark::check_finite(double loss) const {
  if (std::isfinite(loss)) return;
  if (!worker_.step().trains())
    fail(ErrorKind::failed, "the loss of {} is {} in step {}", config().options.model, train::name_of_loss(loss),
         steps_done_);
  fail(ErrorKind::failed,
       "the loss of {} is {} in step {} (warm-up included) at a learning rate of {}; "
       "try a lower --init-learning-rate or some --num-learning-rate-warmup-epochs",
       config().options.model, train::name_of_loss(loss), steps_done_,
       config().schedule.at(static_cast<double>(steps_done_ - 1)));
}

void Benchmark::check_replicas() {
  worker_.replicas()->check_agreement(worker_.step().session());
  if (!worker_.replicas()->sync().buckets().empty()) result_.replicas_agree = worker_.step().session().variables().step;
}

void Benchmark::warm_up(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock) {
  const std::int64_t steps = config().num_warmup_batches;
  while (result_.warmup_steps < steps) {
    const bool first = result_.warmup_steps == 0;
    if (ends(stop.stop_requested(), !first && clock.past(kWarmupShare), first)) return;
    const double loss = run_step();
    check_finite(loss);
    ++result_.warmup_steps;
    observer.on_warmup_step(
        {.step = result_.warmup_steps, .steps = steps, .loss = loss, .elapsed_seconds = clock.elapsed()});
  }
}

double Benchmark::settle() {
  const auto start = SteadyClock::now();
  const perf::ScopedSpan span = trace_.settle();
  if (worker_.replicas() != nullptr) worker_.replicas()->sync().settle();
  return seconds_since(start);
}

void Benchmark::add_times() {
  ++times_.steps;
  times_.input += worker_.input_seconds();
  worker_.count_step();
  if (worker_.replicas() == nullptr) return;
  const Executable::ExchangeTimes& exchange = worker_.step().executable().exchange_times();
  times_.update += exchange.update;
  times_.wait += exchange.wait + worker_.bubble_seconds();
  times_.bubble += worker_.bubble_seconds();
  const std::span<const double> buckets = worker_.replicas()->sync().communication_seconds();
  times_.bucket_seconds.resize(buckets.size());
  for (std::size_t i = 0; i < buckets.size(); ++i) times_.bucket_seconds[i] += buckets[i];
}

// The mean over all workers for steps that are displayed; not computed for the others. In a pipeline it is known.
double Benchmark::shown_loss(double loss, std::int64_t step) {
  if (const std::optional<double> of_all = worker_.loss_of_all()) return *of_all;
  const train::DistributionConfig& distribution = config().distribution;
  if (!worker_.in_lock_step() || distribution.backup_workers > 0 || distribution.pipeline.is_used() ||
      !is_displayed(step, config().display_every))
    return loss;
  worker_.workers().set_context("loss of all workers");
  return sum_over(worker_.workers(), loss) / worker_.workers().size();
}

double Benchmark::run_timed_step(std::int64_t repeat, std::int64_t done) {
  trace_.set_recording(repeat == 0 && done < config().options.trace_steps);
  const perf::ScopedSpan span = trace_.step(done + 1);
  const double loss = run_step();
  // Servers answer after the next step has begun: after the last step, what is in transit still belongs to these steps.
  if (done + 1 == *config().num_batches) times_.wait += settle();
  return loss;
}

void Benchmark::run_repeat(BenchmarkObserver& observer, const std::stop_token& stop, const Clock& clock,
                           std::int64_t repeat) {
  const BenchmarkConfig& config = setup_.config;
  // Divides the time left after warm-up evenly: this repeat may use it up to here.
  const double start_share = clock.limit_seconds > 0 ? clock.elapsed() / clock.limit_seconds : 0;
  const double end_share = start_share + std::max(0.0, 1 - start_share) / static_cast<double>(*config.repeats - repeat);
  auto& seconds = result_.step_seconds.emplace_back();
  auto& losses = result_.losses.emplace_back();
  const auto expected = static_cast<std::size_t>(std::min(*config.num_batches, kReserveAtMost));
  seconds.reserve(expected);
  losses.reserve(expected);
  // The first step after steps of the other kind is atypical.
  if ((config.io_overhead || (config.on_gpu() && config.baseline)) && repeat > 0) run_step();

  settle();
  for (std::int64_t done = 0; done < *config.num_batches; ++done) {
    const bool first = done == 0;
    if (ends(stop.stop_requested(), !first && clock.past(end_share), first)) return;
    const auto start = SteadyClock::now();
    const double loss = run_timed_step(repeat, done);
    seconds.push_back(seconds_since(start));
    losses.push_back(loss);
    check_finite(loss);
    add_times();
    const std::int64_t check = config.distribution.check_replicas;
    if (worker_.in_lock_step() && check > 0 && (done + 1) % check == 0) check_replicas();
    observer.on_step({.repeat = repeat,
                      .step = done + 1,
                      .steps = *config.num_batches,
                      .loss = shown_loss(loss, done + 1),
                      .elapsed_seconds = clock.elapsed(),
                      .step_seconds = seconds});
  }
}

// Images per second of this worker over as many steps as the last repeat had, with a barrier before and after.
double Benchmark::measure_alone(const std::stop_token& stop, bool takes_part) {
  double speed = 0;
  comm::barrier(worker_.workers());
  if (takes_part) {
    const auto steps = static_cast<std::int64_t>(result_.step_seconds.back().size());
    const auto start = SteadyClock::now();
    for (std::int64_t i = 0; i < steps && !stop.stop_requested(); ++i) run_step();
    speed = static_cast<double>(config().batch_size * steps) / seconds_since(start);
  }
  comm::barrier(worker_.workers());
  return speed;
}

// Runs after each repeat, so that slow changes of the machine affect all three alike. The replicas diverge here and
// return to rank 0's values afterwards; these steps do not count.
void Benchmark::run_baselines(const std::stop_token& stop) {
  BatchSplit& step = worker_.step().split();
  VariableStore& store = worker_.step().session().variables();
  const auto steps_before = steps_done_;
  const auto updates_before = store.step;
  step.set_exchange(nullptr);
  if (config().on_gpu()) run_step();  // is recorded again
  worker_.workers().set_context("baseline");
  const auto timeout = worker_.workers().timeout();
  worker_.workers().set_timeout(comm::Communicator::kUnevenTimeout);
  const double together = sum_over(worker_.workers(), measure_alone(stop, true));
  const double alone = comm::all_gather_value(worker_.workers(), measure_alone(stop, worker_.workers().rank() == 0))[0];
  agree_on_interrupt(stop.stop_requested());
  worker_.workers().set_timeout(timeout);
  steps_done_ = steps_before;
  store.step = updates_before;
  worker_.replicas()->restore_values(worker_.step().session());
  worker_.replicas()->exchange_gradients(step, {});
  if (result_.interrupted) return;  // half-done
  result_.baseline.independent.push_back(together);
  result_.baseline.alone.push_back(alone);
}

// Collective: images per second of all workers together.
double Benchmark::together(const std::vector<double>& step_seconds) {
  return sum_over(worker_.workers(), throughput(step_seconds, config().batch_size).images_per_second);
}

// After a repeat with real images: as many steps on a fixed batch, as with synthetic images. The decoder threads go
// idle once their memory is full, which happens during the first step.
void Benchmark::run_in_place(const std::stop_token& stop) {
  const auto steps = result_.step_seconds.back().size();
  std::vector<double> seconds;
  keeps_batch_ = true;
  run_step();
  while (seconds.size() < steps && !ends(stop.stop_requested(), false, seconds.empty())) {
    const auto start = SteadyClock::now();
    check_finite(run_step());
    seconds.push_back(seconds_since(start));
  }
  keeps_batch_ = false;
  barrier(false);
  if (result_.interrupted) return;  // half-done
  worker_.workers().set_context("comparing steps with and without input");
  const double real = together(result_.step_seconds.back()), in_place = together(seconds);
  result_.input_cost.real.push_back(real);
  result_.input_cost.in_place.push_back(in_place);
}

// Collective, between steps of different kinds. If servers hold the variables, a worker that finishes early does not
// block the others, and all continue from the same values.
void Benchmark::barrier(bool timed) {
  if (worker_.replicas() != nullptr) worker_.replicas()->sync().rest();
  worker_.workers().set_context("waiting for all workers to end their steps");
  worker_.leave_lost_behind();
  agree_on_interrupt(result_.interrupted);
  if (worker_.servers() == nullptr) return;
  if (timed) count_traffic(1);
  comm::barrier(worker_.workers());
  worker_.replicas()->restore_values(worker_.step().session());
  comm::barrier(worker_.workers());
}

// For timed steps only: subtracted before, added after, while nothing is in progress.
void Benchmark::count_traffic(int sign) {
  if (worker_.servers() == nullptr || worker_.workers().rank() > 0) return;
  statistics_ = worker_.servers()->server_statistics();
  traffic_.resize(statistics_.size());
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    const Traffic now = traffic_of(statistics_[i]);
    traffic_[i].received += sign * now.received;
    traffic_[i].sent += sign * now.sent;
  }
}

// Collective. Workers that exchange nothing end at different times; here they learn whether one was asked to stop.
void Benchmark::agree_on_interrupt(bool asked) {
  for (const bool each : comm::all_gather_value(worker_.workers(), static_cast<char>(asked)))
    result_.interrupted = result_.interrupted || each;
}

RankReport Benchmark::rank_report() const {
  RankReport report;
  report.rank = worker_.workers().self().world_rank;
  report.host = worker_.workers().self().host;
  report.cores = setup_.threads.cores;
  report.step_seconds = result_.step_seconds;
  report.losses = result_.losses;
  report.peak_rss_bytes = perf::peak_rss_bytes();
  report.planned_bytes = setup_.planned_bytes;
  report.used_bytes = report.peak_rss_bytes - setup_.rss_before_bytes;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, times_.steps));
  report.step = perf::summarize(joined(result_.step_seconds)).mean;
  report.update = times_.update / steps;
  report.wait = times_.wait / steps;
  if (worker_.has_bubbles()) report.bubble = times_.bubble / steps;
  report.input = times_.input / steps;
  for (const double seconds : times_.bucket_seconds) report.bucket_seconds.push_back(seconds / steps);
  return report;
}

std::vector<record::ServerLoad> Benchmark::server_loads() const {
  std::vector<record::ServerLoad> reports;
  for (std::size_t i = 0; i < statistics_.size(); ++i) {
    reports.push_back(server_load(statistics_[i], setup_.servers[i].host, traffic_[i], times_.steps));
  }
  return reports;
}

void Benchmark::run(BenchmarkObserver& observer, std::stop_token stop) {
  observer.on_start(setup_);
  Clock clock{.limit_seconds = config().max_seconds.value_or(0)};
  if (!worker_.in_lock_step()) worker_.workers().set_timeout(comm::Communicator::kUnevenTimeout);
  try {
    warm_up(observer, stop, clock);
    barrier(false);
    if (config().profile) worker_.step().enable_profile();
    for (std::int64_t repeat = 0; repeat < *config().repeats && !result_.interrupted; ++repeat) {
      count_traffic(-1);
      if (worker_.servers() != nullptr) comm::barrier(worker_.workers());
      run_repeat(observer, stop, clock, repeat);
      trace_.set_recording(false);
      barrier(true);
      if (worker_.replicas() != nullptr) check_replicas();
      const auto start = SteadyClock::now();
      if (config().io_overhead && !result_.interrupted) run_in_place(stop);
      if (config().baseline && !result_.interrupted) run_baselines(stop);
      clock.start += SteadyClock::now() - start;  // not the repeats' time
    }
    result_.device_bytes = worker_.backend().device().allocated_bytes();
    result_.ranks = gather_reports(worker_.workers(), rank_report());
    worker_.judge_timings();
    if (worker_.input() != nullptr) result_.bad_records = worker_.input()->count_bad_records(worker_.workers());
    result_.servers = server_loads();
    result_.loss_scale = worker_.step().loss_scale();
    if (worker_.replicas() != nullptr) worker_.replicas()->sync().leave();
  } catch (...) {
    observer.on_end(setup_, result_);
    throw;
  }
  worker_.measure_peak();
  setup_.peak = worker_.setup().peak;
  observer.on_end(setup_, result_);
}

}  // namespace trireme::lab
