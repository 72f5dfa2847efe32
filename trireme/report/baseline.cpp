#include "trireme/report/baseline.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/perf/rank_test.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/findings.hpp"
#include "trireme/report/study.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

constexpr const char* kOld = "old";
constexpr const char* kNew = "new";

std::set<std::string> values_of(const RecordSet& records, std::string Run::*field_of) {
  std::set<std::string> values;
  for (const Run& run : records.runs) {
    if (run.is_measured()) values.insert(run.*field_of);
  }
  return values;
}

// A gate must not judge machines; otherwise only warns.
void other_hardware(const std::string& what, bool must_match, std::vector<std::string>& warnings) {
  if (must_match) bad_input("--fail-if-slower: {}; measure both on the same machine", what);
  warnings.push_back(fmt::format("Caution: {}. The differences below may come from the machines.", what));
}

void check_machines(const RecordSet& old_records, const RecordSet& new_records, bool must_match,
                    std::vector<std::string>& warnings) {
  std::set<std::string> all;
  for (const auto part : {&Run::hardware, &Run::gpu}) {
    auto old_values = values_of(old_records, part), new_values = values_of(new_records, part);
    if (part == &Run::gpu) {  // CPU runs have none
      old_values.erase("");
      new_values.erase("");
    }
    std::set<std::string> values = old_values;
    values.insert(new_values.begin(), new_values.end());
    if (values.size() > 1) {
      other_hardware(fmt::format("the baseline was measured on different hardware ({}) from the new runs ({})",
                                 fmt::join(old_values, "; "), fmt::join(new_values, "; ")),
                     must_match, warnings);
      return;
    }
    all.merge(values);
  }
  if (all.count(record::kUnknownMachine) > 0) {
    other_hardware("the records do not say which machine they were measured on", must_match, warnings);
  } else if (values_of(old_records, &Run::machine_line) != values_of(new_records, &Run::machine_line)) {
    warnings.emplace_back("The two sides were measured on different hosts of the same kind.");
  }
}

void check_builds(const RecordSet& records, const char* side, std::vector<std::string>& warnings) {
  std::set<std::string> builds;
  for (const Run& run : records.runs) {
    if (run.is_measured() && run.is_own()) builds.insert(run.build_line);
  }
  if (builds.size() > 1)
    warnings.push_back(
        fmt::format("The {} side mixes runs of {} builds ({}).", side, builds.size(), fmt::join(builds, "; ")));
}

// More hosts are more hardware.
void check_hosts(const CellChange& change, const Run& old_run, const Run& new_run, bool must_match,
                 std::vector<std::string>& warnings) {
  const std::size_t before = old_run.hosts.size(), now = new_run.hosts.size();
  if (before == 0 || now == 0 || before == now) return;
  other_hardware(
      fmt::format("{} ran on {} host{} before and on {} now", change.label, before, before == 1 ? "" : "s", now),
      must_match, warnings);
}

// Options not used to match cells, with both sides' values: "protocol (grpc, now mpi)".
void add_differences(const Run& old_run, const Run& new_run, std::map<std::string, std::string>& differences) {
  for (const auto& [option, value] : new_run.options.items()) {
    if (!is_setting(new_run, option) || !is_setting(old_run, option)) continue;
    const Json before = setting_of(old_run, option), now = setting_of(new_run, option);
    if (before != now)
      differences.try_emplace(option, fmt::format("{} ({}, now {})", option, value_text(before), value_text(now)));
  }
}

void add_side(const RecordSet& records, const char* side, RecordSet& both) {
  for (Run run : records.runs) {
    run.side = side;
    both.runs.push_back(std::move(run));
  }
}

const Cell* other_side(const Study& study, const Cell& cell) {
  for (const Cell& other : study.cells) {
    if (&other != &cell && settings_without(other, {"side"}) == settings_without(cell, {"side"})) return &other;
  }
  return nullptr;
}

std::string label_of(const Cell& cell) {
  const std::string text = settings_text(settings_without(cell, {"side"}));
  return text.empty() ? cell.example().option_text("model") : text;
}

bool has_settings(const Run& run, const Json& settings) {
  for (const auto& [option, value] : settings.items()) {
    if (setting_of(run, option) != value) return false;
  }
  return true;
}

// Runs of one side that failed in this cell; interrupted ones do not count.
std::vector<const Run*> failures(const Study& study, const Cell& cell, const char* side) {
  std::vector<const Run*> runs;
  for (const Run& run : study.failed) {
    if (run.error && run.side == side && has_settings(run, settings_without(cell, {"side"}))) runs.push_back(&run);
  }
  return runs;
}

// For a cell measured before: it is missing now, or newly fails.
void add_broken(const Study& study, const Cell& old_cell, bool is_measured, BaselineComparison& result) {
  const std::vector<const Run*> failed = failures(study, old_cell, kNew);
  const std::string count = fmt::format("{} run{} failed", failed.size(), failed.size() == 1 ? "" : "s");
  if (!is_measured) {
    result.broken.push_back(
        fmt::format("{}: measured before, not now{}", label_of(old_cell),
                    failed.empty() ? "" : fmt::format(" ({}: {})", count, short_error(*failed[0]))));
  } else if (!failed.empty() && failures(study, old_cell, kOld).empty()) {
    result.broken.push_back(fmt::format("{}: {}, none before: {}", label_of(old_cell), count, short_error(*failed[0])));
  }
}

void add_study(const Study& study, bool must_match, BaselineComparison& result) {
  std::map<std::string, std::string> differences;
  for (const Cell& cell : study.cells) {
    const Cell* other = other_side(study, cell);
    const bool is_old = cell.example().side == kOld;
    if (is_old) add_broken(study, cell, other != nullptr, result);
    if (other == nullptr) {
      result.warnings.push_back(fmt::format("{}: {} is on one side only ({}) and is not compared.", study.title,
                                            label_of(cell), cell.example().side));
    }
    if (is_old || other == nullptr) continue;
    result.changes.push_back({.study = study.title,
                              .label = label_of(cell),
                              .old_speeds = other->run_speeds(),
                              .new_speeds = cell.run_speeds(),
                              .command = cell.example().repeat_command,
                              .comparison = perf::compare(cell.run_speeds(), other->run_speeds())});
    check_hosts(result.changes.back(), other->example(), cell.example(), must_match, result.warnings);
    add_differences(other->example(), cell.example(), differences);
  }
  if (!differences.empty()) {
    std::vector<std::string> texts;
    for (const auto& [option, text] : differences) texts.push_back(text);
    result.warnings.push_back(
        fmt::format("{}: the two sides differ in {}. The differences below may come from these options.", study.title,
                    fmt::join(texts, ", ")));
  }
  for (const Run& run : study.failed) {
    result.warnings.push_back(fmt::format("{} ({}): {}", run.file, run.side, run.error ? *run.error : "interrupted"));
  }
}

void compare_overall(BaselineComparison& result) {
  std::vector<perf::SamplePair> pairs;
  for (const CellChange& change : result.changes) pairs.push_back({change.new_speeds, change.old_speeds});
  result.overall = perf::compare_overall(pairs);
}

using perf::Verdict;

constexpr const char* kFigure = "baseline-change";

double change_in_percent(double ratio) { return 100 * (ratio - 1); }

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
                          number_cell(change_in_percent(change.comparison.ratio)),
                          number_cell(change_in_percent(change.comparison.interval.low)),
                          number_cell(change_in_percent(change.comparison.interval.high)),
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
    series.points.push_back({.x = static_cast<double>(i),
                             .y = change_in_percent(change.comparison.ratio),
                             .spread = perf::Interval{change_in_percent(change.comparison.interval.low),
                                                      change_in_percent(change.comparison.interval.high),
                                                      change.comparison.interval.is_range},
                             .runs = static_cast<int>(change.new_speeds.size())});
  }
  figure.series.push_back(std::move(series));
  if (!records.runs.empty()) figure.machine = records.runs.front().machine_line;
  return figure;
}

std::vector<Finding> change_findings(const BaselineComparison& comparison) {
  std::vector<Finding> findings;
  for (const std::string& what : comparison.broken)
    findings.push_back({.kind = Finding::Kind::worse, .claim = claim::Broken(), .subjects = {what}});
  const std::size_t count = comparison.changes.size();
  if (count > 1) findings.push_back(tested(claim::Changes{count}, {}, comparison.overall, kFigure));
  std::vector<const CellChange*> shown;
  for (const CellChange& change : comparison.changes) {
    if (change.comparison.is_supported()) shown.push_back(&change);
  }
  std::ranges::sort(shown, {}, [](const CellChange* change) { return change->comparison.ratio; });
  for (const CellChange* change : shown) {
    findings.push_back(tested(claim::Change(), {change->label}, change->comparison, kFigure));
  }
  for (const Verdict verdict : {Verdict::no_difference_shown, Verdict::too_few_runs}) {
    const auto alike = std::ranges::count(comparison.changes, verdict,
                                          [](const CellChange& change) { return change.comparison.verdict; });
    if (alike == 0) continue;
    findings.push_back({.kind = Finding::Kind::not_shown,
                        .claim = claim::Unchanged{.count = static_cast<std::size_t>(alike), .configurations = count},
                        .verdict = verdict,
                        .figure = kFigure});
  }
  return findings;
}

}  // namespace

BaselineComparison compare_with_baseline(const RecordSet& old_records, const RecordSet& new_records, bool must_match) {
  BaselineComparison result;
  for (const RecordSet* records : {&old_records, &new_records})
    result.warnings.insert(result.warnings.end(), records->warnings.begin(), records->warnings.end());
  check_machines(old_records, new_records, must_match, result.warnings);
  check_builds(old_records, kOld, result.warnings);
  check_builds(new_records, kNew, result.warnings);
  RecordSet both;
  both.plans = new_records.plans;
  add_side(old_records, kOld, both);
  add_side(new_records, kNew, both);
  for (const Study& study : make_studies(both)) {
    result.warnings.insert(result.warnings.end(), study.warnings.begin(), study.warnings.end());
    add_study(study, must_match, result);
  }
  if (result.changes.empty()) {
    bad_input("no configuration was measured on both sides; {}",
              result.warnings.empty() ? "are these records of benchmarks?" : result.warnings.front());
  }
  std::vector<perf::Comparison> comparisons;
  for (const CellChange& change : result.changes) comparisons.push_back(change.comparison);
  perf::correct_together(comparisons);
  for (std::size_t i = 0; i < comparisons.size(); ++i) result.changes[i].comparison = comparisons[i];
  compare_overall(result);
  return result;
}

std::vector<std::string> regressions(const BaselineComparison& comparison, double share) {
  std::vector<std::string> slower;
  for (const CellChange& change : comparison.changes) {
    if (change.comparison.verdict == perf::Verdict::smaller && change.comparison.ratio < 1 - share) {
      slower.push_back(
          fmt::format("{}: {:.3f}x ({})", change.label, change.comparison.ratio, perf::p_text(change.comparison.p)));
    }
  }
  const perf::Comparison& overall = comparison.overall;
  if (comparison.changes.size() > 1 && overall.verdict == perf::Verdict::smaller && overall.ratio < 1 - share) {
    slower.push_back(fmt::format("all {} configurations together: {:.3f}x ({})", comparison.changes.size(),
                                 overall.ratio, perf::p_text(overall.p)));
  }
  return slower;
}

bool is_blind(const BaselineComparison& comparison) {
  return is_blind_to_cells(comparison) && comparison.overall.verdict == perf::Verdict::too_few_runs;
}

bool is_blind_to_cells(const BaselineComparison& comparison) {
  return std::ranges::all_of(comparison.changes, [](const CellChange& change) {
    return change.comparison.verdict == perf::Verdict::too_few_runs;
  });
}

Document make_baseline_document(const BaselineComparison& comparison, const RecordSet& new_records) {
  Document document{.title = "New against old",
                    .facts = facts_of(new_records),
                    .warnings = comparison.warnings,
                    .findings = change_findings(comparison),
                    .guidelines = {},
                    .sections = {},
                    .runs = runs_table(make_studies(new_records)),
                    .files = files_of(new_records)};
  document.sections.push_back({.title = "What changed", .figures = {change_figure(comparison, new_records)}});
  return document;
}

}  // namespace trireme::report
