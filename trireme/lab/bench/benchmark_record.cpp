#include "trireme/lab/bench/benchmark_record.hpp"

#include <algorithm>

#include "trireme/lab/bench/job_figures.hpp"
#include "trireme/lab/bench/profile.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/facts.hpp"

namespace trireme::lab {
namespace {

// For workers that exchange nothing: they wait only for input. Only a profiled run knows the optimizer's share; if
// inter-op threads overlap instructions, nothing is known about shares. Core groups wait for each other inside kernels,
// which is not measured.
record::Breakdown breakdown(const Benchmark& benchmark, double mean_step_seconds, double input_seconds) {
  const BenchmarkConfig& config = benchmark.setup().config;
  record::Breakdown result;
  result.communication = 0;
  result.exposed_communication = 0;
  result.idle = 0;
  result.input_wait = input_seconds;
  if (config.options.forward_only) result.optimizer = 0;
  if (config.batch_split > 1) result.idle.reset();
  if (config.inter_threads > 1 || config.batch_split > 1) return result;
  result.compute = mean_step_seconds - input_seconds;
  if (config.profile && !config.options.forward_only) {
    const Executable& executable = benchmark.executable();
    result.optimizer = make_profile(executable.program(), executable.profile(), mean_step_seconds).update_seconds;
    *result.compute -= *result.optimizer;
  }
  return result;
}

record::Results make_results(const Benchmark& benchmark) {
  const BenchmarkSetup& setup = benchmark.setup();
  const BenchmarkResult& measured = benchmark.result();
  record::Results results;
  results.peak_rss_bytes = perf::peak_rss_bytes();
  const JobFigures figures = job_figures(setup, measured);
  results.alone_images_per_second = measured.baseline.alone;
  results.independent_images_per_second = measured.baseline.independent;
  results.in_place_images_per_second = measured.input_cost.in_place;
  results.io_overhead_percent_per_repeat = measured.input_cost.overheads();
  if (!results.io_overhead_percent_per_repeat.empty())
    results.io_overhead_percent = perf::summarize(results.io_overhead_percent_per_repeat).median;
  if (setup.config.data.is_real()) results.bad_records = measured.bad_records;
  if (measured.loss_scale) {
    results.loss_scale = measured.loss_scale->scale;
    results.skipped_updates = measured.loss_scale->skipped_updates;
  }
  if (figures.per_repeat.empty()) return results;

  results.images_per_second = figures.images_per_second;
  results.images_per_second_per_worker = figures.images_per_second / setup.config.distribution.workers;
  results.images_per_second_per_repeat = figures.per_repeat;
  results.jitter = figures.jitter;
  results.loss = figures.loss;
  results.scaling_efficiency = figures.scaling_efficiency;
  results.share_of_independent = figures.share_of_independent;
  const perf::Summary summary = perf::summarize(joined(figures.step_seconds));
  results.step_seconds = record::StepSeconds(summary);
  if (figures.workers) {
    results.breakdown = figures.workers->ranks;
    results.overlap = figures.workers->overlap;
    results.straggling = figures.workers->straggling;
    if (figures.traffic) {
      results.communication_bytes = figures.traffic->bytes;
      results.bus_bytes_per_second = figures.traffic->bus_bytes_per_second;
      results.link_bytes_per_second = figures.traffic->link_bytes_per_second;
    }
  } else {
    // Workers that exchange nothing differ only in step length.
    for (const RankReport& rank : measured.ranks)
      results.breakdown.push_back(breakdown(benchmark, rank.step, rank.input));
    if (measured.ranks.empty()) results.breakdown.push_back(breakdown(benchmark, summary.mean, 0));
  }
  results.servers = measured.servers;
  for (const RankReport& rank : measured.ranks)
    results.peak_rss_bytes = std::max(results.peak_rss_bytes, rank.peak_rss_bytes);
  results.flops_per_second = setup.config.distribution.workers * setup.flops_per_step / summary.mean;
  results.utilisation = setup.flops_per_step / summary.mean / setup.peak.flops_per_second;
  return results;
}

}  // namespace

record::RunRecord start_record(const BenchmarkConfig& config) {
  auto record = train::begin_record<record::RunRecord>();
  record.config = to_json(config);
  record.given = config.given;
  return record;
}

void fill_record(record::RunRecord& record, const Benchmark& benchmark) {
  const BenchmarkSetup& setup = benchmark.setup();
  record.config = to_json(setup.config);
  record.machine.peak_flops_per_second = setup.peak.flops_per_second;
  record.machine.peak_of = to_string(setup.peak.type);
  if (!setup.device.empty()) {
    Json gpu{{"device", setup.device}, {"peak_bytes_per_second", setup.peak.bytes_per_second}};
    for (const auto& [name, value] : setup.device_facts) gpu[name] = value;
    gpu["training_bytes"] = benchmark.result().device_bytes;
    record.machine.gpu = std::move(gpu);
  }
  const std::vector<RankReport>& ranks = benchmark.result().ranks;
  if (ranks.empty()) {  // it failed: only this worker's data
    record.cluster = {{.role = "worker", .index = 0, .host = record.machine.host, .cores = setup.threads.cores}};
    record.steps = {benchmark.result().step_seconds};
    record.losses = {benchmark.result().losses};
  }
  for (const RankReport& rank : ranks) {
    record.cluster.push_back({.role = "worker", .index = rank.rank, .host = rank.host, .cores = rank.cores});
    record.steps.push_back(rank.step_seconds);
    record.losses.push_back(rank.losses);
  }
  for (const comm::Member& server : setup.servers) {
    const int index = static_cast<int>(&server - setup.servers.data());
    record.cluster.push_back({.role = "ps", .index = index, .host = server.host, .cores = {}});
  }
  record.results = make_results(benchmark);
  record.interrupted = benchmark.result().interrupted;
}

}  // namespace trireme::lab
