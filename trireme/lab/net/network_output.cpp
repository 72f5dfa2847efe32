#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/lab/net/network_run.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/train/facts.hpp"

namespace trireme::lab {
namespace {

std::string gigabytes(double bytes_per_second) { return fmt::format("{:.4f}", bytes_per_second / 1e9); }
std::string microseconds(double seconds) { return fmt::format("{:.1f}", 1e6 * seconds); }

// Shown unless all sizes are.
bool is_landmark(std::int64_t bytes, std::int64_t largest) {
  const auto size = static_cast<std::uint64_t>(bytes);
  return bytes == largest || (std::has_single_bit(size) && std::countr_zero(size) % 4 == 0);
}

std::string host_text(const PairResult& result, const std::vector<comm::Member>& members) {
  const std::string& first = members[result.pair.first].host;
  const std::string& second = members[result.pair.second].host;
  return result.same_host ? fmt::format("same host: {}", first) : fmt::format("{} and {}", first, second);
}

std::string pair_text(const RankPair& pair) { return fmt::format("{}-{}", pair.first, pair.second); }

record::Samples samples_of(const std::vector<double>& seconds) {
  const perf::Summary summary = perf::summarize(seconds);
  return {summary.median, perf::jitter(seconds), summary.minimum, summary.p95, seconds};
}

record::Pair recorded(const PairResult& result) {
  record::Pair pair{.transport = result.transport,
                    .ranks = {result.pair.first, result.pair.second},
                    .same_host = result.same_host,
                    .fit = {result.fit.cost.latency_seconds, result.fit.cost.bytes_per_second, result.fit.residual},
                    .messages = {}};
  for (const MessageResult& message : result.messages) {
    pair.messages.push_back({std::string(to_string(message.mode)), static_cast<double>(message.bytes),
                             message.bytes_per_second(), samples_of(message.seconds)});
  }
  return pair;
}

std::vector<record::AllReduce> recorded(const std::vector<AllReduceResult>& results) {
  std::vector<record::AllReduce> list;
  for (const AllReduceResult& result : results) {
    list.push_back({.transport = result.transport,
                    .algorithm = comm::to_string(result.algorithm),
                    .ranks = result.ranks,
                    .bytes = static_cast<double>(result.bytes),
                    .algorithm_bytes_per_second = result.algorithm_bytes_per_second(),
                    .bus_bytes_per_second = result.bus_bytes_per_second(),
                    .seconds = samples_of(result.seconds)});
  }
  return list;
}

}  // namespace

std::string pair_table(const PairResult& result, const std::vector<comm::Member>& members, bool all_sizes) {
  TextTable table({{"message", Align::right},
                   {"ping-pong us", Align::right},
                   {"+/-", Align::right},
                   {"GB/s", Align::right},
                   {"one-way us", Align::right},
                   {"+/-", Align::right},
                   {"GB/s", Align::right},
                   {"both ways us", Align::right},
                   {"+/-", Align::right},
                   {"GB/s", Align::right}});
  std::map<std::int64_t, std::vector<std::string>> rows;
  for (const MessageResult& message : result.messages) {
    std::vector<std::string>& row = rows.try_emplace(message.bytes, 1, format_bytes(message.bytes)).first->second;
    row.insert(row.end(),
               {microseconds(message.median()), microseconds(message.jitter()), gigabytes(message.bytes_per_second())});
  }
  const std::int64_t largest = rows.rbegin()->first;
  for (const auto& [bytes, row] : rows) {
    if (all_sizes || is_landmark(bytes, largest)) table.add_row(row);
  }
  return fmt::format("{}, ranks {} ({}):\n{}", result.transport, pair_text(result.pair), host_text(result, members),
                     table.text());
}

std::string fit_table(const std::vector<PairResult>& pairs, const std::vector<comm::Member>& members) {
  TextTable table({{"transport"},
                   {"ranks", Align::right},
                   {"hosts"},
                   {"latency us", Align::right},
                   {"GB/s", Align::right},
                   {"residual", Align::right}});
  for (const PairResult& pair : pairs) {
    table.add_row({pair.transport, pair_text(pair.pair), host_text(pair, members),
                   microseconds(pair.fit.cost.latency_seconds), gigabytes(pair.fit.cost.bytes_per_second),
                   fmt::format("{:.0f} %", 100 * pair.fit.residual)});
  }
  return "time = latency (of small messages in ping-pong) + bytes / bandwidth (of large ones, one way):\n" +
         table.text();
}

std::string all_reduce_table(const std::vector<AllReduceResult>& results, const std::string& transport,
                             bool all_sizes) {
  std::vector<Column> columns{{"bytes", Align::right}};
  std::map<std::int64_t, std::vector<std::string>> rows;
  int ranks = 1;
  for (const AllReduceResult& result : results) {
    if (result.transport != transport) continue;
    ranks = result.ranks;
    if (columns.back().title != comm::to_string(result.algorithm) + " us") {
      if (columns.size() > 1) columns.push_back({"GB/s", Align::right});
      columns.push_back({comm::to_string(result.algorithm) + " us", Align::right});
    }
    std::vector<std::string>& row = rows.try_emplace(result.bytes, 1, format_bytes(result.bytes)).first->second;
    row.insert(row.end(), {microseconds(result.median()), gigabytes(result.bus_bytes_per_second())});
  }
  if (rows.empty()) return "";
  columns.push_back({"GB/s", Align::right});
  TextTable table(columns);
  const std::int64_t largest = rows.rbegin()->first;
  for (const auto& [bytes, row] : rows) {
    if (all_sizes || is_landmark(bytes, largest) || bytes == rows.begin()->first) table.add_row(row);
  }
  return fmt::format("all-reduce over {}, {} ranks; GB/s on the bus, 2 (n - 1) / n x bytes / time:\n{}", transport,
                     ranks, table.text());
}

std::string model_table(const NetworkReport& report) {
  TextTable table({{"transport"},
                   {"algorithm"},
                   {"ms per step", Align::right},
                   {"+/-", Align::right},
                   {"GB/s", Align::right},
                   {"bus GB/s", Align::right}});
  for (const AllReduceResult& result : report.model_all_reduce) {
    table.add_row({result.transport, comm::to_string(result.algorithm), fmt::format("{:.2f}", 1e3 * result.median()),
                   fmt::format("{:.2f}", 1e3 * result.jitter()), gigabytes(result.algorithm_bytes_per_second()),
                   gigabytes(result.bus_bytes_per_second())});
  }
  const auto [least, most] = std::ranges::minmax_element(report.buckets);
  return fmt::format("all-reduce of the gradients of {}: {} in {} buckets of {} to {}:\n{}", report.model,
                     format_bytes(std::accumulate(report.buckets.begin(), report.buckets.end(), std::int64_t{0})),
                     report.buckets.size(), format_bytes(*least), format_bytes(*most), table.text());
}

record::NetworkRecord network_record(const NetworkReport& report, const std::string& started, Json config) {
  auto record = train::begin_record<record::NetworkRecord>();
  record.started = started;
  record.config = std::move(config);
  for (std::size_t rank = 0; rank < report.members.size(); ++rank) {
    const comm::Member& member = report.members[rank];
    record.cluster.push_back({.index = static_cast<int>(rank), .host = member.host, .node = member.node});
  }
  record.load = {report.load, report.cores};
  for (const auto& [name, words] : report.transports) record.transports.push_back({name, words});
  for (const PairResult& pair : report.pairs) record.pairs.push_back(recorded(pair));
  record.all_reduce = recorded(report.all_reduce);
  if (!report.model.empty()) record.model = {report.model, report.buckets, recorded(report.model_all_reduce)};
  return record;
}

}  // namespace trireme::lab
