// Time breakdown of a step by rank, and the cost of input.
#include <fmt/format.h>

#include <algorithm>

#include "trireme/base/json.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using Figures = std::vector<Figure>;

constexpr std::size_t kMostBars = 32;

struct Bar {
  std::string name;
  const Cell* cell;
  RankTime time;
};

std::vector<Bar> bars_of(const Study& study, bool each_rank) {
  std::vector<Bar> bars;
  for (const Cell& cell : study.cells) {
    const std::vector<RankTime> ranks = rank_times(cell);
    if (ranks.empty()) continue;
    if (!each_rank || ranks.size() == 1) {
      bars.push_back({cell.label, &cell, *mean_time(cell)});
      continue;
    }
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      bars.push_back({fmt::format("{} · rank {}", cell.label, rank), &cell, ranks[rank]});
  }
  return bars;
}

bool is_measured_somewhere(const std::vector<Bar>& bars, const TimePart& part) {
  return std::ranges::any_of(bars, [&](const Bar& bar) { return bar.time.*part.seconds > 0; });
}

bool is_more_than_compute(const std::vector<Bar>& bars) {
  return std::ranges::any_of(bars, [](const Bar& bar) { return bar.time.compute < bar.time.total(); });
}

FigureTable breakdown_table(const std::vector<Bar>& bars) {
  FigureTable table{.columns = {{"configuration"}}, .rows = {}};
  for (const TimePart& part : time_parts()) table.columns.push_back({part.name + " ms", true});
  table.columns.push_back({"step ms", true});
  for (const Bar& bar : bars) {
    std::vector<TableCell> row{{bar.name}};
    for (const TimePart& part : time_parts()) {
      const bool unknown = part.seconds == &RankTime::optimizer && !bar.time.optimizer_known;
      row.push_back(unknown ? TableCell{"in compute"} : number_cell(1000 * bar.time.*part.seconds));
    }
    row.push_back(number_cell(1000 * bar.time.total()));
    table.rows.push_back(std::move(row));
  }
  return table;
}

// Drops cells without input figures.
Study with_overheads(Study study) {
  std::erase_if(study.cells, [](const Cell& cell) { return io_overheads(cell).empty(); });
  return study;
}

using Part = std::optional<double> record::Breakdown::*;

std::vector<double> samples_of(const Cell& cell, std::size_t rank, Part part) {
  std::vector<double> samples;
  for (const Run& run : cell.runs) {
    if (rank < run.results.breakdown.size() && (run.results.breakdown[rank].*part).has_value())
      samples.push_back(*(run.results.breakdown[rank].*part));
  }
  return samples;
}

}  // namespace

std::vector<Figure> breakdown_figures(const Study& study) {
  std::vector<Bar> bars = bars_of(study, true);
  const bool each_rank = bars.size() <= kMostBars;
  if (!each_rank) bars = bars_of(study, false);
  if (!is_more_than_compute(bars)) return {};
  Figure figure = figure_of(study, "time", FigureKind::stacked_bars, "Where the time goes");
  figure.caption = each_rank ? "One step of each rank, by what it spends its time on. Medians over runs."
                             : "One step by what it spends its time on, the mean of its ranks. Medians over runs.";
  figure.y.title = "ms per step";
  for (const Bar& bar : bars) figure.x.categories.push_back(bar.name);
  for (std::size_t place = 0; place < time_parts().size(); ++place) {
    const TimePart& part = time_parts()[place];
    if (!is_measured_somewhere(bars, part)) continue;
    Series series{.name = part.name, .colour = static_cast<int>(place)};  // same color in every figure
    for (std::size_t i = 0; i < bars.size(); ++i) {
      series.points.push_back({.x = static_cast<double>(i),
                               .y = 1000 * bars[i].time.*part.seconds,
                               .runs = static_cast<int>(bars[i].cell->runs.size())});
    }
    figure.series.push_back(std::move(series));
  }
  const bool optimizer_apart = std::ranges::all_of(bars, [](const Bar& bar) { return bar.time.optimizer_known; });
  if (!optimizer_apart)
    figure.notes.emplace_back("Compute includes the optimizer if it was not measured separately (as --profile does).");
  if (bars_of(study, false).size() < study.cells.size()) {
    figure.notes.emplace_back(
        "Configurations in which parts of a step run at the same time (inter-op threads, split batches) are left out: "
        "their shares are not known.");
  }
  figure.table = breakdown_table(bars);
  return {std::move(figure)};
}

std::vector<Figure> io_overhead_figures(const Study& all) {
  const Study study = with_overheads(all);
  if (study.cells.empty()) return {};
  const bool over_workers = study.varies_in_numbers("workers");
  Figure figure =
      figure_of(study, "io-overhead", over_workers ? FigureKind::lines : FigureKind::bars, "What input costs");
  figure.caption = "Speed lost to reading and decoding images, against the same steps on a batch that stays in place.";
  figure.y.title = "I/O overhead (%)";
  if (over_workers) {
    figure.x.title = option_title("workers");
    for (const CellGroup& group : group_apart_from(study, {"workers"})) {
      Series series{.name = group.name};
      for (const Cell* cell : group.cells)
        series.points.push_back(point_of(number_setting(*cell, "workers"), io_overheads(*cell)));
      figure.series.push_back(std::move(series));
    }
  } else {
    Series series{.name = "I/O overhead"};
    for (std::size_t i = 0; i < study.cells.size(); ++i) {
      figure.x.categories.push_back(study.cells[i].label);
      series.points.push_back(point_of(static_cast<double>(i), io_overheads(study.cells[i])));
    }
    figure.series.push_back(std::move(series));
  }
  add_column(figure, {"I/O overhead %", true}, study,
             [](const Cell& cell) { return number_cell(point_of(0, io_overheads(cell)).y); });
  return {std::move(figure)};
}

std::vector<RankTime> rank_times(const Cell& cell) {
  std::size_t ranks = 0;
  for (const Run& run : cell.runs) ranks = std::max(ranks, run.results.breakdown.size());
  std::vector<RankTime> times;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const std::vector<double> compute = samples_of(cell, rank, &record::Breakdown::compute);
    if (compute.empty()) return {};
    const std::vector<double> optimizer = samples_of(cell, rank, &record::Breakdown::optimizer);
    times.push_back(
        {.compute = perf::median(compute),
         .exposed_communication = perf::median(samples_of(cell, rank, &record::Breakdown::exposed_communication)),
         .input_wait = perf::median(samples_of(cell, rank, &record::Breakdown::input_wait)),
         .optimizer = perf::median(optimizer),
         .idle = perf::median(samples_of(cell, rank, &record::Breakdown::idle)),
         .optimizer_known = !optimizer.empty()});
  }
  return times;
}

std::optional<RankTime> mean_time(const Cell& cell) {
  const std::vector<RankTime> ranks = rank_times(cell);
  if (ranks.empty()) return std::nullopt;
  RankTime mean{.optimizer_known = ranks.front().optimizer_known};
  for (const TimePart& part : time_parts()) {
    for (const RankTime& rank : ranks) mean.*part.seconds += rank.*part.seconds / static_cast<double>(ranks.size());
  }
  return mean;
}

std::vector<double> io_overheads(const Cell& cell) {
  return cell.runs.size() == 1 ? cell.example().results.io_overhead_percent_per_repeat : run_io_overheads(cell);
}

std::vector<double> run_io_overheads(const Cell& cell) {
  std::vector<double> samples;
  for (const Run& run : cell.runs) {
    if (!run.results.io_overhead_percent_per_repeat.empty())
      samples.push_back(perf::median(run.results.io_overhead_percent_per_repeat));
  }
  return samples;
}

const std::vector<TimePart>& time_parts() {
  static const std::vector<TimePart> parts{{"compute", &RankTime::compute},
                                           {"exposed communication", &RankTime::exposed_communication},
                                           {"input wait", &RankTime::input_wait},
                                           {"optimizer", &RankTime::optimizer},
                                           {"idle", &RankTime::idle}};
  return parts;
}

}  // namespace trireme::report
