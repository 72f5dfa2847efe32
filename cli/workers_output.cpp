// Text about workers and servers that train together.
#include <fmt/ranges.h>

#include "cli/benchmark_output.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/base/units.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::cli {
namespace {

std::string milliseconds(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.1f}", 1e3 * *seconds) : "-";
}

std::string servers_update_text(const lab::BenchmarkSetup& setup) {
  const train::DistributionConfig& distribution = setup.config.distribution;
  std::string text = fmt::format("{}, ", to_string(distribution.update));
  if (!distribution.asynchronous) {
    text += "synchronous";
    if (distribution.backup_workers > 0) {
      text += fmt::format(": the first {} gradients of {}", distribution.workers - distribution.backup_workers,
                          distribution.workers);
    }
  } else if (distribution.staleness) {
    text += fmt::format("at most {} step{} ahead of the slowest worker", *distribution.staleness,
                        *distribution.staleness == 1 ? "" : "s");
  } else {
    text += "asynchronous";
  }
  return text + (distribution.overlap ? ", pushed during backward" : ", pushed after backward (--overlap off)");
}

int stage_of(const record::Pipeline& pipeline, int rank) {
  int stage = 0;
  for (; rank >= pipeline.stages[static_cast<std::size_t>(stage)].replicas; ++stage) {
    rank -= pipeline.stages[static_cast<std::size_t>(stage)].replicas;
  }
  return stage;
}

// How much of a step stages wait for each other, and what crosses the cuts.
std::string stages_text(const record::Pipeline& pipeline) {
  std::vector<std::string> shares, cuts;
  for (const double share : pipeline.bubble_share) shares.push_back(fmt::format("{:.1f}", 100 * share));
  for (const record::Cut& cut : pipeline.cuts) cuts.push_back(format_bytes(cut.bytes_per_step));
  const std::string bubbles = shares.empty() ? "" : fmt::format("bubbles {} % of a step; ", fmt::join(shares, ", "));
  return fmt::format("stages:      {}{} per step across the cut{}\n", bubbles, fmt::join(cuts, ", "),
                     cuts.size() == 1 ? "" : "s");
}

std::string communication_text(const lab::WorkerSummary& workers, const std::optional<lab::GradientTraffic>& traffic) {
  if (!(workers.communication > 0)) return "communication: not measured; between GPUs it is part of compute\n";
  std::string text = fmt::format("communication: {} ms per step", milliseconds(workers.communication));
  if (workers.overlap) text += fmt::format(", {:.0f} % of it hidden behind compute", 100 * *workers.overlap);
  if (!traffic) return text + "\n";
  text +=
      fmt::format("; {} at {}/s on the bus", format_bytes(traffic->bytes), format_bytes(traffic->bus_bytes_per_second));
  if (traffic->link_bytes_per_second) {
    text += fmt::format(", of {}/s that the link has", format_bytes(*traffic->link_bytes_per_second));
  }
  return text + "\n";
}

}  // namespace

std::string workers_text(int workers) { return fmt::format("{} worker{}", workers, workers == 1 ? "" : "s"); }

std::string members_text(const std::vector<comm::Member>& members) {
  std::vector<std::string> hosts;
  std::vector<int> counts;
  for (const comm::Member& member : members) {
    if (hosts.empty() || hosts.back() != member.host) {
      hosts.push_back(member.host);
      counts.push_back(0);
    }
    ++counts.back();
  }
  std::vector<std::string> words;
  for (std::size_t i = 0; i < hosts.size(); ++i) words.push_back(fmt::format("{} on {}", counts[i], hosts[i]));
  return fmt::format("{}: {}", members.size(), fmt::join(words, ", "));
}

std::string servers_text(const lab::BenchmarkSetup& setup) {
  std::int64_t most = 0, all = 0;
  for (const ps::ServerLoad& load : setup.server_loads) {
    most = std::max(most, load.bytes());
    all += load.bytes();
  }
  const double mean = static_cast<double>(all) / static_cast<double>(setup.server_loads.size());
  return fmt::format("{}; variables {}: at most {} on one, {:.2f} x the mean", members_text(setup.servers),
                     ps::to_string(setup.config.distribution.placement), format_bytes(most),
                     static_cast<double>(most) / mean);
}

std::string update_text(const lab::BenchmarkSetup& setup) {
  const train::DistributionConfig& distribution = setup.config.distribution;
  std::int64_t bytes = 0;
  for (const std::int64_t bucket : setup.bucket_bytes) bytes += bucket;
  std::string text;
  if (distribution.uses_servers()) {
    text = fmt::format("{}: {} of gradients in {} buckets", servers_update_text(setup), format_bytes(bytes),
                       setup.bucket_bytes.size());
  } else if (const train::PipelineConfig& pipeline = distribution.pipeline; pipeline.is_used()) {
    text = fmt::format("{}: {} micro-batches of {}, schedule {}; parts begin at the images, {}", pipeline.text(),
                       pipeline.micro_batches, setup.config.images_per_run(), to_string(pipeline.kind),
                       fmt::join(setup.cuts, ", "));
    if (!setup.bucket_bytes.empty()) {
      text += fmt::format("; all_reduce ({}) in a stage: {} of gradients in {} buckets", setup.all_reduce,
                          format_bytes(bytes), setup.bucket_bytes.size());
    }
  } else if (!distribution.is_synchronous()) {
    return distribution.workers == 1 ? "independent: one process" : "independent: workers exchange nothing";
  } else {
    text = fmt::format("all_reduce ({}): {} of gradients in {} buckets, {}", setup.all_reduce, format_bytes(bytes),
                       setup.bucket_bytes.size(),
                       distribution.overlap ? "during backward" : "after backward (--overlap off)");
    if (distribution.wire != comm::Wire::fp32) text += fmt::format(", {} on the wire", comm::to_string(setup.wire));
  }
  if (!setup.gradient_path.empty()) text += ", " + setup.gradient_path;
  if (distribution.shard_optimizer) text += ", each worker updates its part of the weights (--shard-optimizer)";
  return text + (distribution.sync_batch_norm ? ", batch norm over all workers" : "");
}

std::string servers_table(const lab::BenchmarkSetup& setup, const std::vector<record::ServerLoad>& servers) {
  const bool asynchronous = setup.config.distribution.asynchronous;
  std::vector<Column> columns{{"ps", Align::right},
                              {"host", Align::left},
                              {"holds", Align::right},
                              {"in per step", Align::right},
                              {"out per step", Align::right}};
  if (asynchronous) {
    columns.insert(columns.end(),
                   {{"mean staleness", Align::right}, {"most", Align::right}, {"most steps ahead", Align::right}});
  } else if (setup.config.distribution.backup_workers > 0) {
    columns.push_back({"dropped gradients", Align::right});
  }
  TextTable table(columns);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const record::ServerLoad& server = servers[i];
    std::vector<std::string> row{fmt::format("{}", i), server.host, format_bytes(server.variable_bytes),
                                 format_bytes(server.bytes_received_per_step),
                                 format_bytes(server.bytes_sent_per_step)};
    if (asynchronous) {
      row.insert(row.end(), {fmt::format("{:.2f}", server.mean_staleness), fmt::format("{}", server.max_staleness),
                             fmt::format("{}", server.max_lead)});
    } else if (setup.config.distribution.backup_workers > 0) {
      row.push_back(fmt::format("{}", server.dropped_gradients));
    }
    table.add_row(row);
  }
  return "servers:\n" + table.text();
}

std::string workers_table(const lab::JobFigures& figures, const std::vector<lab::RankReport>& ranks) {
  const lab::WorkerSummary& workers = *figures.workers;
  TextTable table({{"rank", Align::right},
                   {"host", Align::left},
                   {"compute", Align::right},
                   {"input wait", Align::right},
                   {"optimizer", Align::right},
                   {"exposed comm.", Align::right},
                   {"idle", Align::right},
                   {"step", Align::right},
                   {"straggling", Align::right}});
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const record::Breakdown& part = workers.ranks[rank];
    table.add_row({fmt::format("{}", ranks[rank].rank), ranks[rank].host, milliseconds(part.compute),
                   milliseconds(part.input_wait), milliseconds(part.optimizer),
                   milliseconds(part.exposed_communication), milliseconds(part.idle), milliseconds(ranks[rank].step),
                   fmt::format("{:.2f}", workers.straggling[rank])});
  }
  std::string text = "per step and rank, in ms:\n" + table.text();
  text += figures.pipeline ? stages_text(*figures.pipeline) : communication_text(workers, figures.traffic);
  const auto slowest = static_cast<std::size_t>(workers.slowest);
  if (workers.straggling[slowest] < lab::WorkerSummary::kSlow) return text;
  const std::string finding = fmt::format("rank {} ({}) computes {:.2f} times as long as the others, which wait for it",
                                          ranks[slowest].rank, ranks[slowest].host, workers.straggling[slowest]);
  if (!figures.pipeline) return text + fmt::format("slow: {}\n", finding);
  return text + fmt::format("longest:     stage {}: {}: it has more work, or is slow\n",
                            stage_of(*figures.pipeline, workers.slowest), finding);
}

std::string baseline_text(const lab::BenchmarkSetup& setup, const lab::BenchmarkResult& result,
                          const lab::JobFigures& figures) {
  if (!figures.independent_by_alone) return "";
  const int workers = setup.config.distribution.workers;
  const double alone = perf::summarize(result.baseline.alone).median;
  const double independent = perf::summarize(result.baseline.independent).median;
  if (figures.baselines_contradict()) {
    return fmt::format(
        "efficiency:  unknown, because the measurements contradict each other by a factor of {1:.1f}: {0} workers that "
        "train together reach {2:.2f} images/sec, {0} that exchange nothing {3:.2f}, {0} x one worker alone {4:.2f}; "
        "each should be at least the one before it. Something else used the machine: measure again when it is idle\n",
        workers, figures.contradiction, figures.images_per_second, independent, workers * alone);
  }
  if (!figures.scaling_efficiency || !figures.share_of_independent) return "";
  std::string text = fmt::format(
      "efficiency:  {:.1f} % of {} x one worker alone ({:.2f} images/sec); {:.1f} % of {} workers that exchange "
      "nothing ({:.2f} images/sec)\n",
      100 * *figures.scaling_efficiency, workers, alone, 100 * *figures.share_of_independent, workers, independent);
  if (*figures.independent_by_alone < lab::JobFigures::kLeastIndependentByAlone) {
    text += fmt::format(
        "             workers that exchange nothing reach {:.1f} % of {} x one worker alone: they share cores or "
        "memory bandwidth, or other programs were running\n",
        100 * *figures.independent_by_alone, workers);
  }
  return text;
}

}  // namespace trireme::cli
