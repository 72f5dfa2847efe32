#include "trireme/lab/bench/job_figures.hpp"

#include <algorithm>
#include <numeric>

#include "trireme/perf/statistics.hpp"

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

}  // namespace trireme::lab
