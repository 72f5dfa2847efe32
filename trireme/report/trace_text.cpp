// Trace analysis as text.
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/report/trace_analysis.hpp"

namespace trireme::report {
namespace {

constexpr double kWorthAWord = 1.1;      // straggling
constexpr double kSmallShare = 0.005;    // of the critical path
constexpr std::size_t kMostPieces = 40;  // of one path

std::string milliseconds(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }
std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string groups_text(const TracedRank& rank) {
  std::vector<std::string> parts;
  for (const double wait : rank.groups_wait) parts.push_back(milliseconds(wait));
  return fmt::format("{}: the groups wait {} ms for each other; each figure above is their mean\n", rank.name,
                     fmt::join(parts, " and "));
}

// The columns from compute to idle add up to the step.
std::string rank_table(const TraceAnalysis& analysis) {
  const bool has_groups =
      std::ranges::any_of(analysis.ranks, [](const TracedRank& rank) { return !rank.groups_wait.empty(); });
  const bool has_stages = !analysis.stages.empty();
  std::vector<Column> columns{{"rank"},
                              {"steps", Align::right},
                              {"step", Align::right},
                              {"compute", Align::right},
                              {"optimizer", Align::right},
                              {"input", Align::right},
                              {"exposed", Align::right}};
  if (has_groups) columns.push_back({"groups wait", Align::right});
  if (has_stages) columns.push_back({"bubble", Align::right});
  columns.insert(columns.end(), {{"idle", Align::right},
                                 {"communication", Align::right},
                                 {"others late", Align::right},
                                 {"overlap", Align::right}});
  TextTable table(columns);
  std::string of_groups;
  for (const TracedRank& rank : analysis.ranks) {
    std::vector<std::string> row{rank.name,
                                 std::to_string(rank.steps),
                                 milliseconds(rank.step),
                                 milliseconds(rank.compute),
                                 milliseconds(rank.optimizer),
                                 milliseconds(rank.input),
                                 milliseconds(rank.exposed)};
    if (has_groups) row.push_back(milliseconds(rank.mean_groups_wait()));
    if (has_stages) row.push_back(milliseconds(rank.bubble));
    row.insert(row.end(), {milliseconds(rank.idle), milliseconds(rank.communication), milliseconds(rank.late_others),
                           rank.communication > 0 ? percent(rank.overlap) : "-"});
    table.add_row(row);
    if (!rank.groups_wait.empty()) of_groups += groups_text(rank);
  }
  return "where the time of a step goes, in milliseconds; the columns from compute to idle add up to it\n" +
         table.text() + of_groups;
}

std::string stage_table(const TraceAnalysis& analysis) {
  if (analysis.stages.empty()) return "";
  std::vector<Column> columns{{"stage", Align::right}, {"workers", Align::right}};
  for (const char* part : {"step", "forward", "backward", "weights", "reduce", "update", "bubble", "bubble share"})
    columns.push_back({part, Align::right});
  TextTable table(columns);
  for (const StageTime& time : analysis.stages) {
    std::vector<std::string> row{std::to_string(time.stage), std::to_string(time.workers)};
    for (const double part :
         {time.step, time.forward, time.backward, time.weights, time.reduce, time.update, time.bubble})
      row.push_back(milliseconds(part));
    row.push_back(percent(time.bubble_share()));
    table.add_row(row);
  }
  return "stages of the pipeline, in milliseconds per step; a bubble is waiting for another stage\n" + table.text() +
         "\n";
}

std::string straggler_text(const TraceAnalysis& analysis) {
  if (analysis.ranks.size() < 2) return "";
  const auto slowest = std::ranges::max_element(analysis.ranks, {}, &TracedRank::straggling);
  if (slowest->straggling < kWorthAWord) {
    return fmt::format("stragglers: none; the slowest, {}, takes {:.2f} times the median of the others\n",
                       slowest->name, slowest->straggling);
  }
  std::string text = "stragglers:\n";
  for (const TracedRank& rank : analysis.ranks) {
    if (rank.straggling < kWorthAWord) continue;
    text += fmt::format("  {} takes {:.2f} times the median of the others, and came last to {} of the buckets\n",
                        rank.name, rank.straggling, percent(rank.came_last));
  }
  return text;
}

std::string server_text(const TraceAnalysis& analysis) {
  std::string text;
  for (const ServerTime& server : analysis.servers) {
    text += fmt::format("{} applied gradients {} times, which kept it busy {} of the time\n", server.name,
                        format_count(server.updates), percent(server.busy));
  }
  return text;
}

std::string path_text(const TraceAnalysis& analysis) {
  std::vector<std::string> shares;
  for (const PathShare& share : analysis.path) {
    if (share.share >= kSmallShare)
      shares.push_back(fmt::format("{} of rank {} {}", share.kind, share.rank, percent(share.share)));
  }
  std::string text = fmt::format("critical path, all steps: {}\n", fmt::join(shares, ", "));
  const CriticalPath& path = analysis.slowest_step;
  text += fmt::format("critical path of the slowest step, step {}, {}:\n", path.step, format_seconds(path.seconds));
  TextTable table({{"  at ms", Align::right}, {"ms", Align::right}, {"rank", Align::right}, {"what"}, {"longest"}});
  for (std::size_t i = 0; i < path.pieces.size() && i < kMostPieces; ++i) {
    const PathPiece& piece = path.pieces[i];
    const std::string count = piece.spans > 1 ? fmt::format("{} x {}", piece.spans, piece.kind) : piece.kind;
    table.add_row(
        {milliseconds(piece.begin), milliseconds(piece.seconds), std::to_string(piece.rank), count, piece.longest});
  }
  text += table.text();
  if (path.pieces.size() > kMostPieces) text += fmt::format("  and {} more pieces\n", path.pieces.size() - kMostPieces);
  return text;
}

std::string bucket_table(const TraceAnalysis& analysis) {
  if (analysis.buckets.empty()) return "";
  TextTable table({{"bucket", Align::right},
                   {"size", Align::right},
                   {"ms", Align::right},
                   {"bus", Align::right},
                   {"with"},
                   {"gradients"}});
  for (const BucketTime& bucket : analysis.buckets) {
    table.add_row({std::to_string(bucket.bucket), format_bytes(bucket.bytes), milliseconds(bucket.seconds),
                   format_bytes(bucket.bus_bytes_per_second) + "/s", bucket.peers, bucket.gradients});
  }
  return "buckets of gradients, medians over the steps\n" + table.text() + "\n";
}

std::string operation_table(const TraceAnalysis& analysis, std::size_t rows) {
  TextTable table({{"ms", Align::right}, {"share", Align::right}, {"operation"}, {"kind"}});
  for (std::size_t i = 0; i < analysis.operations.size() && i < rows; ++i) {
    const OperationTime& operation = analysis.operations[i];
    table.add_row({milliseconds(operation.seconds), percent(operation.share), operation.name, operation.operation});
  }
  return fmt::format("operations, the longest {} of {}, per step and rank\n",
                     std::min(rows, analysis.operations.size()), analysis.operations.size()) +
         table.text();
}

}  // namespace

std::string to_text(const TraceAnalysis& analysis, std::size_t operations) {
  std::string text = fmt::format("{}\n", fmt::join(analysis.command, " "));
  for (const std::string& remark : analysis.remarks) text += remark + "\n";
  return fmt::format("{}\n{}\n{}{}{}{}\n{}{}", text, rank_table(analysis), stage_table(analysis),
                     straggler_text(analysis), server_text(analysis), path_text(analysis), bucket_table(analysis),
                     operation_table(analysis, operations));
}

}  // namespace trireme::report
