#include "trireme/report/baseline.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trireme/base/error.hpp"
#include "trireme/perf/rank_test.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/figure_parts.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

constexpr const char* kOld = "old";
constexpr const char* kNew = "new";

std::set<std::string> values_of(const RecordSet& records, std::string Run::*field_of) {
  std::set<std::string> values;
  for (const Run& run : records.runs) {
    if (run.machine_facts.is_object()) values.insert(run.*field_of);
  }
  return values;
}

void check_machines(const RecordSet& old_records, const RecordSet& new_records, bool must_match,
                    std::vector<std::string>& warnings) {
  const auto old_hardware = values_of(old_records, &Run::hardware),
             new_hardware = values_of(new_records, &Run::hardware);
  std::set<std::string> all = old_hardware;
  all.insert(new_hardware.begin(), new_hardware.end());
  if (all.size() > 1) {
    const std::string text = fmt::format("the baseline was measured on other hardware ({}) than the new runs ({})",
                                         fmt::join(old_hardware, "; "), fmt::join(new_hardware, "; "));
    if (must_match) bad_input("--fail-if-slower: {}; measure both on the same machine", text);
    warnings.push_back("Careful: " + text + ". The differences below are those of machines as much as of anything.");
    return;
  }
  if (values_of(old_records, &Run::machine) != values_of(new_records, &Run::machine))
    warnings.emplace_back("The two sides were measured on different hosts of the same kind.");
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

void add_study(const Study& study, BaselineComparison& result) {
  for (const Cell& cell : study.cells) {
    const Cell* other = other_side(study, cell);
    if (other == nullptr) {
      result.warnings.push_back(fmt::format("{}: {} is on one side only ({}) and is not compared.", study.title,
                                            label_of(cell), cell.example().side));
      continue;
    }
    if (cell.example().side != kNew) continue;
    result.changes.push_back({.study = study.title,
                              .label = label_of(cell),
                              .old_speeds = other->speeds,
                              .new_speeds = cell.speeds,
                              .command = cell.example().command,
                              .comparison = perf::compare(cell.speeds, other->speeds)});
  }
  for (const Run& run : study.failed) {
    result.warnings.push_back(fmt::format("{} ({}): {}", run.file, run.side, run.error ? *run.error : "interrupted"));
  }
}

void compare_overall(BaselineComparison& result) {
  std::vector<perf::SamplePair> pairs;
  double logarithms = 0;
  for (const CellChange& change : result.changes) {
    pairs.push_back({change.new_speeds, change.old_speeds});
    logarithms += std::log(change.comparison.ratio);
  }
  result.overall_ratio = std::exp(logarithms / static_cast<double>(pairs.size()));
  result.overall_p = perf::overall_rank_test(pairs).p;
}

}  // namespace

BaselineComparison compare_with_baseline(const RecordSet& old_records, const RecordSet& new_records, bool must_match) {
  BaselineComparison result;
  for (const RecordSet* records : {&old_records, &new_records})
    result.warnings.insert(result.warnings.end(), records->warnings.begin(), records->warnings.end());
  check_machines(old_records, new_records, must_match, result.warnings);
  RecordSet both;
  both.plans = new_records.plans;
  add_side(old_records, kOld, both);
  add_side(new_records, kNew, both);
  for (const Study& study : make_studies(both)) {
    result.warnings.insert(result.warnings.end(), study.warnings.begin(), study.warnings.end());
    add_study(study, result);
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
  if (comparison.changes.size() > 1 && comparison.is_overall_shown() && comparison.overall_ratio < 1 - share) {
    slower.push_back(fmt::format("all {} configurations together: {:.3f}x ({})", comparison.changes.size(),
                                 comparison.overall_ratio, perf::p_text(comparison.overall_p)));
  }
  return slower;
}

bool is_blind(const BaselineComparison& comparison) {
  return std::all_of(comparison.changes.begin(), comparison.changes.end(),
                     [](const CellChange& change) { return change.comparison.verdict == perf::Verdict::too_few_runs; });
}

}  // namespace trireme::report
