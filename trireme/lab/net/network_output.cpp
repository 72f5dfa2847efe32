#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "trireme/base/units.hpp"
#include "trireme/lab/net/network_run.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/facts.hpp"
#include "trireme/report/table.hpp"

namespace trireme::lab {
namespace {

using report::Align;
constexpr const char* kNetworkSchema = "trireme.net/1";

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }
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

Json samples_json(const std::vector<double>& seconds) {
  const perf::Summary summary = perf::summarize(seconds);
  return {{"median", summary.median},
          {"jitter", perf::jitter(seconds)},
          {"minimum", summary.minimum},
          {"p95", summary.p95},
          {"samples", seconds}};
}

Json to_json(const PairResult& result) {
  Json messages = Json::array();
  for (const MessageResult& message : result.messages) {
    messages.push_back({{"mode", to_string(message.mode)},
                        {"bytes", message.bytes},
                        {"bytes_per_second", message.bytes_per_second()},
                        {"seconds", samples_json(message.seconds)}});
  }
  return {{"transport", result.transport},
          {"ranks", {result.pair.first, result.pair.second}},
          {"same_host", result.same_host},
          {"fit",
           {{"latency_seconds", result.fit.cost.latency_seconds},
            {"bytes_per_second", result.fit.cost.bytes_per_second},
            {"residual", result.fit.residual}}},
          {"messages", std::move(messages)}};
}

Json to_json(const AllReduceResult& result) {
  return {{"transport", result.transport},
          {"algorithm", comm::to_string(result.algorithm)},
          {"ranks", result.ranks},
          {"bytes", result.bytes},
          {"algorithm_bytes_per_second", result.algorithm_bytes_per_second()},
          {"bus_bytes_per_second", result.bus_bytes_per_second()},
          {"seconds", samples_json(result.seconds)}};
}

template <typename Items>
Json list(const Items& items) {
  Json result = Json::array();
  for (const auto& item : items) result.push_back(to_json(item));
  return result;
}

}  // namespace

std::string pair_table(const PairResult& result, const std::vector<comm::Member>& members, bool all_sizes) {
  report::Table table({{"message", Align::right},
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
    std::vector<std::string>& row = rows.try_emplace(message.bytes, 1, bytes_text(message.bytes)).first->second;
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
  report::Table table({{"transport"},
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
  std::vector<report::Column> columns{{"bytes", Align::right}};
  std::map<std::int64_t, std::vector<std::string>> rows;
  int ranks = 1;
  for (const AllReduceResult& result : results) {
    if (result.transport != transport) continue;
    ranks = result.ranks;
    if (columns.back().title != comm::to_string(result.algorithm) + " us") {
      if (columns.size() > 1) columns.push_back({"GB/s", Align::right});
      columns.push_back({comm::to_string(result.algorithm) + " us", Align::right});
    }
    std::vector<std::string>& row = rows.try_emplace(result.bytes, 1, bytes_text(result.bytes)).first->second;
    row.insert(row.end(), {microseconds(result.median()), gigabytes(result.bus_bytes_per_second())});
  }
  if (rows.empty()) return "";
  columns.push_back({"GB/s", Align::right});
  report::Table table(columns);
  const std::int64_t largest = rows.rbegin()->first;
  for (const auto& [bytes, row] : rows) {
    if (all_sizes || is_landmark(bytes, largest) || bytes == rows.begin()->first) table.add_row(row);
  }
  return fmt::format("all-reduce over {}, {} ranks; GB/s on the bus, 2 (n - 1) / n x bytes / time:\n{}", transport,
                     ranks, table.text());
}

std::string model_table(const NetworkReport& report) {
  report::Table table({{"transport"},
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
                     bytes_text(std::accumulate(report.buckets.begin(), report.buckets.end(), std::int64_t{0})),
                     report.buckets.size(), bytes_text(*least), bytes_text(*most), table.text());
}

Json network_record(const NetworkReport& report, const std::string& started, Json config) {
  Json cluster = Json::array(), transports = Json::array();
  for (std::size_t rank = 0; rank < report.members.size(); ++rank) {
    const comm::Member& member = report.members[rank];
    cluster.push_back({{"role", "worker"}, {"index", rank}, {"host", member.host}, {"node", member.node}});
  }
  for (const auto& [name, words] : report.transports) transports.push_back({{"name", name}, {"carried_by", words}});
  Json json{{"schema", kNetworkSchema},
            {"command", report::command_line()},
            {"started", started},
            {"build", report::build_json()},
            {"machine", report::to_json(perf::read_machine())},
            {"config", std::move(config)},
            {"cluster", std::move(cluster)},
            {"load", {{"threads", report.load}, {"cores", report.cores}}},
            {"transports", std::move(transports)},
            {"pairs", list(report.pairs)},
            {"all_reduce", list(report.all_reduce)}};
  if (!report.model.empty()) {
    json["model"] = {
        {"name", report.model}, {"bucket_bytes", report.buckets}, {"all_reduce", list(report.model_all_reduce)}};
  }
  return json;
}

}  // namespace trireme::lab
