// Does an option matter at all, all else equal? Tests all its values at once: best against worst would be a pair picked
// by its result.
#include <algorithm>

#include "trireme/base/json_fields.hpp"
#include "trireme/perf/comparison.hpp"
#include "trireme/perf/rank_test.hpp"
#include "trireme/report/figure_parts.hpp"
#include "trireme/report/findings.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

// Cells that differ in one option only, over whatever else varies.
struct OptionQuestion {
  std::string option;
  std::vector<CellGroup> groups;
  perf::RankTest test;

  // The fastest cell, and the slowest that differs from it only in the option.
  std::pair<const Cell*, const Cell*> extremes() const {
    const CellGroup* best = &groups.front();
    for (const CellGroup& group : groups) {
      if (fastest(group.cells).median_speed() > fastest(best->cells).median_speed()) best = &group;
    }
    const Cell* slowest = *std::ranges::min_element(best->cells, {}, &Cell::median_speed);
    return {&fastest(best->cells), slowest};
  }
};

// Each of the study's options, for each work separately.
std::vector<OptionQuestion> option_questions(const Study& study) {
  std::vector<OptionQuestion> questions;
  for (const Dimension& dimension : study.dimensions) {
    const std::string& option = dimension.option;
    const bool is_asked_elsewhere = option == "model" || option == "forward-only" || option == "framework" ||
                                    option == "machine" || option == "build" ||
                                    (option == "workers" && !shares_cores(study));
    if (is_asked_elsewhere) continue;
    for (const auto& cells : same_work(study, option)) {
      if (!cells.front()->example().options.contains(option)) continue;  // a label of several options together
      OptionQuestion question{.option = option, .groups = {}, .test = {}};
      std::vector<perf::SampleSets> sets;
      for (const CellGroup& group : group_apart_from(cells, {option})) {
        if (group.cells.size() < 2) continue;
        question.groups.push_back(group);
        sets.emplace_back();
        for (const Cell* cell : group.cells) sets.back().push_back(cell->run_speeds());
      }
      if (sets.empty()) continue;
      question.test = perf::group_rank_test(sets);
      questions.push_back(std::move(question));
    }
  }
  return questions;
}

Finding option_finding(const OptionQuestion& question, double p, std::size_t questions, const std::string& figure) {
  const auto [best, slowest] = question.extremes();
  const auto value = [&](const Cell& cell) {
    return setting_text(question.option, field(cell.settings, {question.option.c_str()}));
  };
  const bool can_tell = question.test.smallest_p * static_cast<double>(questions) < perf::kSignificance;
  perf::Comparison comparison{.ratio = best->median_speed() / slowest->median_speed(), .p = p};
  comparison.verdict = p < perf::kSignificance ? perf::Verdict::larger
                       : can_tell              ? perf::Verdict::no_difference_shown
                                               : perf::Verdict::too_few_runs;
  return tested(claim::Choice{where_text(settings_without(*best, {question.option}))},
                {option_title(question.option), value(*best), value(*slowest)}, comparison, figure);
}

}  // namespace

std::vector<Finding> option_findings(const Study& study, const std::string& figure) {
  if (study.dimensions.size() < 2 && same_work(study).size() < 2) return {};  // the best finding covers it
  const std::vector<OptionQuestion> questions = option_questions(study);
  std::vector<double> p;
  for (const OptionQuestion& question : questions) p.push_back(question.test.p);
  p = perf::holm(p);
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < questions.size(); ++i)
    findings.push_back(option_finding(questions[i], p[i], questions.size(), figure));
  return findings;
}

}  // namespace trireme::report
