#include "trireme/lab/bench/job_figures.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/lab/bench/profile.hpp"
#include "trireme/perf/machine.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/facts.hpp"

namespace trireme::lab {
namespace {

// Of all workers, each over its given steps.
template <typename StepsOf>
double images_per_second(const BenchmarkSetup& setup, const std::vector<RankReport>& ranks, StepsOf steps_of) {
  double sum = 0;
  for (const RankReport& rank : ranks) sum += throughput(steps_of(rank), setup.config.batch_size).images_per_second;
  return sum;
}

// Images whose gradients came too late were not used.
double share_of_used_gradients(const BenchmarkSetup& setup, const BenchmarkResult& result) {
  if (setup.config.distribution.backup_workers == 0 || result.servers.empty()) return 1;
  std::int64_t pushes = 0, dropped = 0;
  for (const record::ServerLoad& server : result.servers) {
    pushes += server.pushes;
    dropped += server.dropped_gradients;
  }
  return pushes > 0 ? 1 - static_cast<double>(dropped) / static_cast<double>(pushes) : 1;
}

std::optional<double> median_ratio(const std::vector<double>& speeds, const std::vector<double>& base, double factor) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < speeds.size() && i < base.size(); ++i) {
    if (base[i] > 0) ratios.push_back(speeds[i] / (factor * base[i]));
  }
  if (ratios.empty()) return std::nullopt;
  return perf::summarize(ratios).median;
}

std::optional<GradientTraffic> traffic_of(const BenchmarkSetup& setup, double communication_seconds) {
  if (setup.all_reduce.empty() || !(communication_seconds > 0)) return std::nullopt;
  const int ranks = setup.config.distribution.workers;
  GradientTraffic traffic;
  traffic.bytes = std::accumulate(setup.bucket_bytes.begin(), setup.bucket_bytes.end(), 0.0);
  if (setup.wire != comm::Wire::fp32) traffic.bytes /= 2;
  traffic.bus_bytes_per_second = 2.0 * (ranks - 1) / ranks * traffic.bytes / communication_seconds;
  const bool crosses_hosts = std::ranges::any_of(
      setup.members, [&](const comm::Member& member) { return member.node != setup.members.front().node; });
  if (crosses_hosts && setup.network && setup.network->other_host) {
    traffic.link_bytes_per_second = setup.network->other_host->fit.cost.bytes_per_second;
  }
  return traffic;
}

std::vector<double> bubble_shares(const record::Pipeline& pipeline, const std::vector<RankReport>& ranks) {
  std::vector<double> shares;
  auto rank = ranks.begin();
  for (const record::Stage& stage : pipeline.stages) {
    double bubble = 0, all = 0;
    for (int replica = 0; replica < stage.replicas; ++replica, ++rank) {
      if (rank == ranks.end() || !rank->bubble) return {};
      bubble += *rank->bubble;
      all += rank->step;
    }
    shares.push_back(bubble / all);
  }
  return shares;
}

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
  for (const RankReport& rank : measured.ranks) {
    results.peak_rss_bytes = std::max(results.peak_rss_bytes, rank.peak_rss_bytes);
    results.memory.push_back({.planned_bytes = rank.planned_bytes, .used_bytes = rank.used_bytes});
  }
  results.flops_per_second = setup.config.distribution.workers * setup.flops_per_step / summary.mean;
  results.utilisation = setup.flops_per_step / summary.mean / setup.peak.flops_per_second;
  return results;
}

}  // namespace

JobFigures job_figures(const BenchmarkSetup& setup, const BenchmarkResult& result) {
  // A failed run has only this worker's measurements.
  std::vector<RankReport> ranks = result.ranks;
  if (ranks.empty()) {
    RankReport& own = ranks.emplace_back();
    own.step_seconds = result.step_seconds;
    own.losses = result.losses;
  }

  const train::DistributionConfig& distribution = setup.config.distribution;
  JobFigures figures;
  figures.step_seconds = slowest_steps(ranks);
  const std::vector<double> seconds = joined(figures.step_seconds);
  figures.pipeline = train::pipeline_of(setup, setup.config);
  if (figures.pipeline) figures.pipeline->bubble_share = bubble_shares(*figures.pipeline, result.ranks);
  if (seconds.empty()) return figures;
  const auto global_batch = setup.config.global_batch_size();
  // With backup workers everyone runs at their own pace, and some gradients are dropped.
  const bool together = distribution.is_synchronous() && distribution.backup_workers == 0;
  figures.jitter = throughput(seconds, setup.config.batch_size).jitter;
  figures.images_per_second =
      together ? throughput(seconds, global_batch).images_per_second
               : images_per_second(setup, ranks, [](const RankReport& rank) { return joined(rank.step_seconds); });
  for (std::size_t repeat = 0; repeat < figures.step_seconds.size(); ++repeat) {
    if (figures.step_seconds[repeat].empty()) continue;
    figures.per_repeat.push_back(together ? throughput(figures.step_seconds[repeat], global_batch).images_per_second
                                          : images_per_second(setup, ranks, [repeat](const RankReport& rank) {
                                              return rank.step_seconds[repeat];
                                            }));
    double loss = 0;
    for (const RankReport& rank : ranks) loss += rank.losses[repeat].back() / static_cast<double>(ranks.size());
    figures.loss = loss;
  }
  if (const double share = share_of_used_gradients(setup, result); share < 1) {
    figures.images_per_second *= share;
    for (double& speed : figures.per_repeat) speed *= share;
  }
  if (together && !result.ranks.empty()) figures.workers = summarize(ranks);
  if (figures.workers) figures.traffic = traffic_of(setup, figures.workers->communication);
  const Baseline& baseline = result.baseline;
  figures.scaling_efficiency = median_ratio(figures.per_repeat, baseline.alone, distribution.workers);
  figures.share_of_independent = median_ratio(figures.per_repeat, baseline.independent, 1);
  figures.independent_by_alone = median_ratio(baseline.independent, baseline.alone, distribution.workers);
  for (const auto& ratio : {figures.scaling_efficiency, figures.share_of_independent, figures.independent_by_alone}) {
    figures.contradiction = std::max(figures.contradiction, ratio.value_or(1));
  }
  if (figures.baselines_contradict()) figures.scaling_efficiency = figures.share_of_independent = std::nullopt;
  return figures;
}

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
  record.pipeline = job_figures(setup, benchmark.result()).pipeline;
  record.plans = train::plans_of(setup, setup.config);
  record.results = make_results(benchmark);
  record.interrupted = benchmark.result().interrupted;
}

}  // namespace trireme::lab
