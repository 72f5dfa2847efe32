#include "trireme/lab/benchmark_record.hpp"

#include "trireme/lab/profile.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/facts.hpp"

namespace trireme::lab {
namespace {

// One process with its batch in place: nothing is communicated and nothing is waited for. Only a profiled run can tell
// the optimizer's share; where inter-op threads run instructions at the same time, none can tell what part of the step
// belongs to which. Groups of cores wait for each other inside kernels, and how long is not measured.
report::Breakdown breakdown(const Benchmark& benchmark, double mean_step_seconds) {
  const BenchmarkConfig& config = benchmark.setup().config;
  report::Breakdown result;
  result.communication = 0;
  result.exposed_communication = 0;
  result.idle = 0;
  result.input_wait = 0;
  if (config.forward_only) result.optimizer = 0;
  if (config.batch_split > 1) result.idle.reset();
  if (config.inter_threads > 1 || config.batch_split > 1) return result;
  result.compute = mean_step_seconds;
  if (config.profile && !config.forward_only) {
    const Executable& executable = benchmark.executable();
    result.optimizer = make_profile(executable.program(), executable.profile(), mean_step_seconds).update_seconds;
    *result.compute -= *result.optimizer;
  }
  return result;
}

report::Results make_results(const Benchmark& benchmark) {
  const BenchmarkSetup& setup = benchmark.setup();
  const BenchmarkResult& measured = benchmark.result();
  report::Results results;
  results.peak_rss_bytes = perf::peak_rss_bytes();
  const std::vector<double> seconds = all_step_seconds(measured);
  if (seconds.empty()) return results;

  const Throughput speed = throughput(seconds, setup.config.batch_size);
  results.images_per_second = speed.images_per_second;
  results.images_per_second_per_worker = speed.images_per_second;
  results.jitter = speed.jitter;
  for (std::size_t repeat = 0; repeat < measured.step_seconds.size(); ++repeat) {
    if (measured.step_seconds[repeat].empty()) continue;
    results.images_per_second_per_repeat.push_back(
        throughput(measured.step_seconds[repeat], setup.config.batch_size).images_per_second);
    results.loss = measured.losses[repeat].back();
  }
  const perf::Summary summary = perf::summarize(seconds);
  results.step_seconds = {summary.mean, summary.median, summary.p95, summary.stderr_mean};
  results.breakdown.push_back(breakdown(benchmark, summary.mean));
  results.flops_per_second = setup.flops_per_step / summary.mean;
  results.utilisation = *results.flops_per_second / setup.peak.flops_per_second;
  return results;
}

}  // namespace

report::RunRecord start_record(const BenchmarkConfig& config) {
  report::RunRecord record;
  record.command = report::command_line();
  record.started = report::rfc3339(std::chrono::system_clock::now());
  record.build = report::build_json();
  record.machine = report::to_json(perf::read_machine());
  record.config = to_json(config);
  return record;
}

void fill_record(report::RunRecord& record, const Benchmark& benchmark) {
  const BenchmarkSetup& setup = benchmark.setup();
  record.config = to_json(setup.config);
  record.machine["peak_flops_per_second"] = setup.peak.flops_per_second;
  record.cluster = {
      {.role = "worker", .index = 0, .host = record.machine.value("host", ""), .cores = setup.threads.cores}};
  record.steps = {benchmark.result().step_seconds};
  record.losses = {benchmark.result().losses};
  record.results = make_results(benchmark);
  record.interrupted = benchmark.result().interrupted;
}

}  // namespace trireme::lab
