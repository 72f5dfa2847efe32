#include "trireme/lab/benchmark.hpp"

#include <cstdio>
#include <cstdlib>

#include "trireme/base/error.hpp"
#include "trireme/comm/local/run_local.hpp"
#include "trireme/perf/statistics.hpp"

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

}  // namespace

Benchmark::Benchmark(const BenchmarkConfig& config, std::function<void()> on_tuning)
    : Benchmark(config, comm::make_single(), std::move(on_tuning), nullptr, nullptr) {}

Benchmark::Benchmark(const BenchmarkConfig& config, comm::Communicator& workers, std::function<void()> on_tuning,
                     comm::Communicator* with_servers, perf::Recorder* recorder)
    // Not owned.
    : Benchmark(config, std::shared_ptr<comm::Communicator>(std::shared_ptr<void>(), &workers), std::move(on_tuning),
                with_servers, recorder) {}

Benchmark::Benchmark(const BenchmarkConfig& config, std::shared_ptr<comm::Communicator> workers,
                     std::function<void()> on_tuning, comm::Communicator* with_servers, perf::Recorder* recorder)
    : place_(config, std::move(workers),
             {.with_servers = with_servers, .on_tuning = std::move(on_tuning), .recorder = recorder}),
      trace_(recorder),
      slow_seconds_(slowness_of(place_.workers().rank())) {}

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
