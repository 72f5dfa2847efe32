#include "trireme/lab/bench/task_reports.hpp"

#include <algorithm>
#include <tuple>

#include "trireme/base/fields.hpp"
#include "trireme/comm/collectives.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme {

template <>
inline constexpr auto kFields<lab::RankReport> = [] {
  using T = lab::RankReport;
  return std::tuple(field("rank", &T::rank), field("host", &T::host), field("cores", &T::cores),
                    field("step_seconds", &T::step_seconds), field("losses", &T::losses), field("step", &T::step),
                    field("update", &T::update), field("wait", &T::wait), field("bubble", &T::bubble),
                    field("input", &T::input), field("bucket_seconds", &T::bucket_seconds),
                    field("peak_rss_bytes", &T::peak_rss_bytes), field("planned_bytes", &T::planned_bytes),
                    field("used_bytes", &T::used_bytes));
}();

namespace lab {
namespace {

double straggling(std::vector<double> compute, std::size_t rank) {
  const double own = compute[rank];
  compute.erase(compute.begin() + static_cast<std::ptrdiff_t>(rank));
  const double others = compute.empty() ? own : perf::summarize(compute).median;
  return others > 0 ? own / others : 1;
}

double communication_seconds(const std::vector<RankReport>& ranks) {
  std::size_t buckets = ranks.front().bucket_seconds.size();
  for (const RankReport& rank : ranks) buckets = std::min(buckets, rank.bucket_seconds.size());
  double total = 0;
  for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
    double least = ranks.front().bucket_seconds[bucket];
    for (const RankReport& rank : ranks) least = std::min(least, rank.bucket_seconds[bucket]);
    total += least;
  }
  return total;
}

}  // namespace

std::vector<RankReport> gather_reports(comm::Communicator& communicator, const RankReport& mine) {
  if (communicator.size() == 1) return {mine};
  communicator.set_context("gathering results");
  std::vector<RankReport> ranks;
  for (const std::string& text : comm::all_gather_text(communicator, value_to_json(mine).dump())) {
    ranks.push_back(from_json<RankReport>(Json::parse(text)));
  }
  return ranks;
}

WorkerSummary summarize(const std::vector<RankReport>& ranks) {
  WorkerSummary summary;
  std::vector<double> compute;
  double longest = 0;
  for (const RankReport& rank : ranks) {
    compute.push_back(rank.compute());
    longest = std::max(longest, rank.busy());
  }
  summary.slowest = static_cast<int>(std::ranges::max_element(compute) - compute.begin());
  const bool has_stages = ranks.front().bubble.has_value();  // whose buckets are different ones
  summary.communication = has_stages ? 0 : communication_seconds(ranks);
  double exposed = 0;
  for (const RankReport& rank : ranks) {
    record::Breakdown& breakdown = summary.ranks.emplace_back();
    breakdown.compute = rank.compute();
    breakdown.optimizer = rank.update;
    breakdown.input_wait = rank.input;
    if (has_stages) {
      breakdown.idle = rank.bubble;
      breakdown.exposed_communication = rank.wait - rank.bubble.value_or(0);
      continue;
    }
    breakdown.idle = std::min(rank.wait, longest - rank.busy());
    if (!(summary.communication > 0)) {  // GPUs exchange directly: unknown
      breakdown.idle = rank.wait;
      continue;
    }
    breakdown.communication = summary.communication;
    breakdown.exposed_communication = std::min(rank.wait - *breakdown.idle, summary.communication);
    *breakdown.idle = rank.wait - *breakdown.exposed_communication;
    exposed += *breakdown.exposed_communication / static_cast<double>(ranks.size());
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) summary.straggling.push_back(straggling(compute, rank));
  if (summary.communication > 0) summary.overlap = 1 - exposed / summary.communication;
  return summary;
}

std::vector<std::vector<double>> slowest_steps(const std::vector<RankReport>& ranks) {
  std::vector<std::vector<double>> slowest = ranks.front().step_seconds;
  for (const RankReport& rank : ranks) {
    slowest.resize(std::min(slowest.size(), rank.step_seconds.size()));
    for (std::size_t repeat = 0; repeat < slowest.size(); ++repeat) {
      const std::vector<double>& seconds = rank.step_seconds[repeat];
      slowest[repeat].resize(std::min(slowest[repeat].size(), seconds.size()));
      for (std::size_t i = 0; i < slowest[repeat].size(); ++i)
        slowest[repeat][i] = std::max(slowest[repeat][i], seconds[i]);
    }
  }
  return slowest;
}

Traffic traffic_of(const std::string& statistics) {
  const Json json = Json::parse(statistics);
  return {.received = json.at("bytes_received"), .sent = json.at("bytes_sent")};
}

record::ServerLoad server_load(const std::string& statistics, const std::string& host, const Traffic& traffic,
                               std::int64_t steps) {
  const auto per_step = [steps](std::int64_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(1, steps));
  };
  record::ServerLoad load;
  read(Json::parse(statistics), load);
  load.host = host;
  load.bytes_received_per_step = per_step(traffic.received);
  load.bytes_sent_per_step = per_step(traffic.sent);
  return load;
}

}  // namespace lab
}  // namespace trireme
