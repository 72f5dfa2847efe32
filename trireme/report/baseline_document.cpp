#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "trireme/perf/statistics.hpp"
#include "trireme/report/baseline.hpp"

namespace trireme::report {
namespace {

using perf::Verdict;

constexpr const char* kFigure = "baseline-change";

double percent(double ratio) { return 100 * (ratio - 1); }

std::string verdict_text(const CellChange& change) {
  constexpr std::array<const char*, 4> kTexts{"faster", "slower", "no difference shown", "not enough runs to tell"};
  return kTexts.at(static_cast<std::size_t>(change.comparison.verdict));
}

FigureTable change_table(const BaselineComparison& comparison) {
  FigureTable table{.columns = {{"study"},
                                {"configuration"},
                                {"old images/s", true},
                                {"new images/s", true},
                                {"change %", true},
                                {"from", true},
                                {"to", true},
                                {"interval"},
                                {"p (Holm)", true},
                                {"verdict"},
                                {"old runs", true},
                                {"new runs", true}},
                    .rows = {}};
  for (const CellChange& change : comparison.changes) {
    table.rows.push_back({{change.study},
                          {change.label},
                          number_cell(perf::median(change.old_speeds)),
                          number_cell(perf::median(change.new_speeds)),
                          number_cell(percent(change.comparison.ratio)),
                          number_cell(percent(change.comparison.interval.low)),
                          number_cell(percent(change.comparison.interval.high)),
                          {kind_text(change.comparison.interval)},
                          {fmt::format("{:.3f}", change.comparison.p), change.comparison.p},
                          {verdict_text(change)},
                          number_cell(static_cast<double>(change.old_speeds.size())),
                          number_cell(static_cast<double>(change.new_speeds.size()))});
  }
  return table;
}

Figure change_figure(const BaselineComparison& comparison, const RecordSet& records) {
  Figure figure{.id = kFigure, .kind = FigureKind::bars, .title = "New against old", .x = {}, .y = {}};
  figure.caption =
      "Change of the median speed; above 0 is faster. Whiskers hold the true change with 95 % confidence (too few "
      "runs: "
      "the range of all ratios).";
  figure.y.title = "change of images/s (%)";
  figure.table = change_table(comparison);
  Series series{.name = "change %"};
  for (std::size_t i = 0; i < comparison.changes.size(); ++i) {
    const CellChange& change = comparison.changes[i];
    figure.x.categories.push_back(change.label);
    figure.commands.push_back({change.label, change.command});
    series.points.push_back(
        {.x = static_cast<double>(i),
         .y = percent(change.comparison.ratio),
         .spread = perf::Interval{percent(change.comparison.interval.low), percent(change.comparison.interval.high),
                                  change.comparison.interval.is_range},
         .runs = static_cast<int>(change.new_speeds.size())});
  }
  figure.series.push_back(std::move(series));
  if (!records.runs.empty()) figure.machine = records.runs.front().machine;
  return figure;
}

Finding overall_finding(const BaselineComparison& comparison) {
  const std::string text = fmt::format("{:.3f}x over {} configurations ({})", comparison.overall.ratio,
                                       comparison.changes.size(), perf::p_text(comparison.overall));
  if (!comparison.overall.is_supported()) {
    return {.kind = Finding::Kind::not_shown,
            .text = "No change of the whole could be shown: " + text + ".",
            .figure = kFigure};
  }
  const bool faster = comparison.overall.verdict == Verdict::larger;
  return {.kind = faster ? Finding::Kind::shown : Finding::Kind::worse,
          .text = fmt::format("{} as a whole: {}.", faster ? "Faster" : "Slower", text),
          .figure = kFigure};
}

std::vector<Finding> change_findings(const BaselineComparison& comparison) {
  std::vector<Finding> findings;
  for (const std::string& what : comparison.broken)
    findings.push_back({.kind = Finding::Kind::worse, .text = fmt::format("Broken: {}.", what)});
  if (comparison.changes.size() > 1) findings.push_back(overall_finding(comparison));
  std::size_t none = 0, too_few = 0;
  std::vector<const CellChange*> shown;
  for (const CellChange& change : comparison.changes) {
    none += change.comparison.verdict == Verdict::no_difference_shown;
    too_few += change.comparison.verdict == Verdict::too_few_runs;
    if (change.comparison.is_supported()) shown.push_back(&change);
  }
  std::ranges::sort(shown, {}, [](const CellChange* change) { return change->comparison.ratio; });
  for (const CellChange* change : shown) {
    findings.push_back({.kind = change->comparison.ratio > 1 ? Finding::Kind::shown : Finding::Kind::worse,
                        .text = fmt::format("{} got {}: {:.3f}x ({}; {}: {:.3f} to {:.3f}).", change->label,
                                            verdict_text(*change), change->comparison.ratio,
                                            perf::p_text(change->comparison.p), kind_text(change->comparison.interval),
                                            change->comparison.interval.low, change->comparison.interval.high),
                        .figure = kFigure});
  }
  const auto add_count = [&](std::size_t count, const std::string& text) {
    if (count > 0)
      findings.push_back({.kind = Finding::Kind::not_shown,
                          .text = fmt::format("{} of {}: {}.", count, comparison.changes.size(), text),
                          .figure = kFigure});
  };
  add_count(none, "no difference could be shown");
  add_count(too_few, fmt::format("not enough runs to tell; {} on each side would do for so many configurations",
                                 perf::runs_needed(comparison.changes.size())));
  return findings;
}

}  // namespace

Document make_baseline_document(const BaselineComparison& comparison, const RecordSet& new_records) {
  Document document{.title = "New against old",
                    .facts = facts_of(new_records),
                    .warnings = comparison.warnings,
                    .findings = change_findings(comparison),
                    .guidelines = {},
                    .sections = {},
                    .runs = runs_table(make_studies(new_records))};
  document.sections.push_back({.title = "What changed", .figures = {change_figure(comparison, new_records)}});
  return document;
}

}  // namespace trireme::report
