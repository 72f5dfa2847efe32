#include "trireme/lab/benchmark.hpp"

#include <cstdio>
#include <cstdlib>

#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/same_options.hpp"

namespace trireme::lab {
namespace {

// TRIREME_SLOW_RANK=1:20 makes every step of rank 1 take 20 ms longer: for trying what is said about slow workers.
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
    : worker_(checked(config, group.workers), group, {.on_tuning = std::move(on_tuning), .recorder = recorder}),
      trace_(recorder),
      slow_seconds_(slowness_of(group.workers.rank())) {
  setup_ = setup_of(worker_, config);
}

BenchmarkSetup setup_of(const train::Worker& worker, const BenchmarkConfig& config) {
  BenchmarkSetup setup{worker.setup(), config};
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

}  // namespace trireme::lab
