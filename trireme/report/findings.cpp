#include "trireme/report/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "trireme/base/json.hpp"
#include "trireme/perf/comparison.hpp"
#include "trireme/perf/rank_test.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/study_figures.hpp"

namespace trireme::report {
namespace {

using perf::Comparison;
using perf::Verdict;

using CellPair = std::pair<const Cell*, const Cell*>;

struct Pair {
  const Cell* first;
  const Cell* second;
  Comparison comparison;
};

claim::RunCounts run_counts(const Cell& first, const Cell& second, std::size_t comparisons) {
  return {.first = first.run_speeds().size(),
          .second = second.run_speeds().size(),
          .needed = perf::runs_needed(comparisons),
          .has_repeats = first.is_one_run() || second.is_one_run()};
}

// Several pairs of one question are corrected together.
std::vector<Pair> compared(std::vector<CellPair> cells) {
  std::vector<Comparison> comparisons;
  for (const auto& [first, second] : cells)
    comparisons.push_back(perf::compare(first->run_speeds(), second->run_speeds()));
  perf::correct_together(comparisons);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < cells.size(); ++i) pairs.push_back({cells[i].first, cells[i].second, comparisons[i]});
  return pairs;
}

Finding pair_finding(const Pair& pair, std::vector<std::string> subjects, claim::Pair claim, std::size_t comparisons,
                     const std::string& figure) {
  claim.runs = run_counts(*pair.first, *pair.second, comparisons);
  return tested(claim, std::move(subjects), pair.comparison, figure);
}

double workers_of(const Cell& cell) { return cell.example().option_or("workers", 1); }
double threads_of(const Cell& cell) { return cell.example().option_or("num-intra-threads", 0); }

std::string processes_text(const Cell& cell) {
  const double workers = workers_of(cell), threads = threads_of(cell);
  return fmt::format("{:g} process{} × {:g} thread{}", workers, workers == 1 ? "" : "es", threads,
                     threads == 1 ? "" : "s");
}

// Unsupported is weaker than supported.
bool is_weaker(const Comparison& first, const Comparison& second) {
  return first.is_supported() == second.is_supported() ? first.p > second.p : second.is_supported();
}

// The fastest must beat each of the others, so the weakest of these comparisons counts.
Finding best_finding(const std::vector<const Cell*>& cells, const std::string& figure) {
  const Cell& best = fastest(cells);
  std::vector<const Cell*> others = cells;
  std::erase(others, &best);
  const Cell* next = &fastest(others);
  std::vector<Comparison> comparisons;
  for (const Cell* cell : others) comparisons.push_back(perf::compare(best.run_speeds(), cell->run_speeds()));
  const auto place = std::ranges::min_element(comparisons, is_weaker) - comparisons.begin();
  Comparison weakest = comparisons[place];
  weakest.ratio = best.median_speed() / next->median_speed();
  weakest.interval = {};  // of another ratio
  return tested(claim::Fastest{.configurations = cells.size(),
                               .images_per_second = best.median_speed(),
                               .runs = run_counts(best, *others[place], 1)},
                {best.label, next->label}, weakest, figure);
}

// With equal cores and images per step: one process with many threads, or many processes with few?
void add_processes(const Study& study, const std::string& figure, std::vector<Finding>& findings) {
  std::map<std::string, std::vector<const Cell*>> groups;
  for (const auto& cells : same_work(study)) {
    for (const Cell* cell : cells) {
      if (threads_of(*cell) <= 0) continue;
      Json key{{"of", cells.front()->label},
               {"batch", cell->example().effective_batch()},
               {"cores", workers_of(*cell) * threads_of(*cell)}};
      for (const auto& [option, value] : cell->settings.items()) {
        // A label for several options together; where it ran is not one of them.
        const bool is_label = !cell->example().options.contains(option) && option != "gpu" && option != "hosts";
        if (option != "workers" && option != "num-intra-threads" && option != "batch-size" && !is_label)
          key[option] = value;
      }
      groups[key.dump()].push_back(cell);
    }
  }
  // The fastest of several was picked by its result, so all of them count as questions.
  std::vector<CellPair> questions;
  std::set<const Cell*> chosen;
  for (auto& [key, cells] : groups) {
    const auto fewest = std::ranges::min_element(cells, {}, [](const Cell* cell) { return workers_of(*cell); });
    const Cell* single = *fewest;
    std::erase_if(cells, [&](const Cell* cell) { return workers_of(*cell) == workers_of(*single); });
    for (const Cell* cell : cells) questions.emplace_back(cell, single);
    if (!cells.empty()) chosen.insert(&fastest(cells));
  }
  for (const Pair& pair : compared(questions)) {
    if (chosen.count(pair.first) == 0) continue;
    findings.push_back(
        pair_finding(pair, {processes_text(*pair.first), processes_text(*pair.second)},
                     {.where = fmt::format(" at effective batch {:g}", pair.first->example().effective_batch())},
                     questions.size(), figure));
  }
}

void add_scaling(const Study& study, const std::vector<Figure>& figures, std::vector<Finding>& findings) {
  if (!study.varies_in_numbers("workers") || shares_cores(study)) return;
  const std::string figure = figure_ending(figures, "-efficiency");
  std::vector<CellPair> questions;
  std::map<const Cell*, Point> shares;
  for (const Efficiency& efficiency : efficiencies(study)) {
    shares[efficiency.cell] = efficiency.share;
    if (efficiency.cell == efficiency.base || !are_comparable(*efficiency.cell, *efficiency.base)) continue;
    if (!questions.empty() && questions.back().second == efficiency.base) questions.pop_back();  // most workers only
    questions.emplace_back(efficiency.cell, efficiency.base);
  }
  for (const Pair& pair : compared(questions)) {
    findings.push_back(pair_finding(
        pair, {setting_text("workers", workers_of(*pair.first)), setting_text("workers", workers_of(*pair.second))},
        {.where = where_text(settings_without(*pair.first, {"workers"})), .efficiency = shares[pair.first]},
        questions.size(), figure));
  }
}

// Each cell appears once; otherwise the pairs depend on each other.
bool are_independent(const std::vector<CellPair>& pairs) {
  std::set<const Cell*> cells;
  for (const auto& [first, second] : pairs) cells.insert({first, second});
  return cells.size() == 2 * pairs.size();
}

Finding overall_finding(const std::vector<CellPair>& pairs, Comparison overall, const std::string& first,
                        const std::string& second, const std::string& figure) {
  std::vector<double> ratios;
  for (const CellPair& pair : pairs) ratios.push_back(pair.first->median_speed() / pair.second->median_speed());
  const auto [least, most] = std::ranges::minmax_element(ratios);
  overall.interval = {*least, *most, true};
  return tested(claim::Overall{pairs.size()}, {first, second}, overall, figure);
}

// Cells that differ only in this option, in several settings: all together, and each alone if it has enough runs.
void add_pairs(const std::vector<CellPair>& questions, const std::string& option, const std::string& figure,
               std::vector<Finding>& findings) {
  const auto value = [&](const Cell& cell) { return setting_text(option, field(cell.settings, {option.c_str()})); };
  std::map<std::string, std::vector<CellPair>> by_second;
  for (const CellPair& pair : questions) by_second[value(*pair.second)].push_back(pair);
  std::erase_if(by_second, [](const auto& entry) { return entry.second.size() < 2 || !are_independent(entry.second); });
  std::vector<Comparison> overall;
  for (const auto& [second, pairs] : by_second) {
    std::vector<perf::SamplePair> samples;
    for (const CellPair& pair : pairs) samples.push_back({pair.first->run_speeds(), pair.second->run_speeds()});
    overall.push_back(perf::compare_overall(samples));
  }
  perf::correct_together(overall);
  std::size_t index = 0;
  for (const auto& [second, pairs] : by_second) {
    const Comparison& comparison = overall[index++];
    if (comparison.verdict != Verdict::too_few_runs)
      findings.push_back(overall_finding(pairs, comparison, value(*pairs.front().first), second, figure));
  }
  for (const Pair& pair : compared(questions)) {
    if (pair.comparison.verdict == Verdict::too_few_runs && !by_second.empty()) continue;  // see the overall finding
    findings.push_back(pair_finding(pair, {value(*pair.first), value(*pair.second)},
                                    {.where = where_text(settings_without(*pair.first, {option}))}, questions.size(),
                                    figure));
  }
}

// The cost of backward and update.
void add_passes(const Study& study, const std::string& figure, std::vector<Finding>& findings) {
  if (!study.varies("forward-only")) return;
  std::vector<CellPair> questions;
  for (const CellGroup& group : group_apart_from(study, {"forward-only"})) {
    if (group.cells.size() == 2) questions.emplace_back(group.cells.front(), group.cells.back());
  }
  add_pairs(questions, "forward-only", figure, findings);
}

// All settings of the other framework's cell hold for this one too.
bool are_alike(const Cell& own, const Cell& other) {
  const Json settings = settings_without(other, {"framework"});
  for (const auto& [option, value] : settings.items()) {
    if (field(own.settings, {option.c_str()}) != value) return false;
  }
  return true;
}

void add_frameworks(const Study& study, const std::string& figure, std::vector<Finding>& findings) {
  if (!study.varies("framework")) return;
  std::vector<CellPair> questions;
  for (const Cell& own : study.cells) {
    if (!own.example().is_own()) continue;
    for (const Cell& other : study.cells) {
      if (!other.example().is_own() && are_alike(own, other)) questions.emplace_back(&own, &other);
    }
  }
  add_pairs(questions, "framework", figure, findings);
}

Json work_of(const Run& run) {
  Json work{{"framework", run.framework},
            {"machine", run.machine_line},
            {"gpu", run.gpu},
            {"build", run.build_line},
            {"exchange", exchange_of(run)}};
  for (const char* option : {"model", "forward-only", "precision", "device", "data-name", "num-classes"})
    work[option] = field(run.options, {option});
  return work;
}

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

}  // namespace

std::vector<Finding> comparison_findings(const Study& study, const std::vector<Figure>& figures) {
  if (study.cells.empty()) return {};
  const std::string figure = figure_ending(figures, "");
  std::vector<Finding> findings = best_findings(study, figure);
  add_processes(study, figure, findings);
  add_scaling(study, figures, findings);
  std::vector<Finding> options = option_findings(study, figure);
  findings.insert(findings.end(), options.begin(), options.end());
  add_passes(study, figure, findings);
  add_frameworks(study, figure, findings);
  // If little varies, the same sentence may answer two questions.
  std::vector<Finding> distinct;
  for (Finding& finding : findings) {
    if (std::ranges::none_of(distinct, [&](const Finding& f) { return text_of(f) == text_of(finding); }))
      distinct.push_back(std::move(finding));
  }
  return distinct;
}

std::vector<Finding> best_findings(const Study& study, const std::string& figure) {
  std::vector<Finding> findings;
  for (const auto& cells : same_work(study)) {
    if (cells.size() > 1) findings.push_back(best_finding(cells, figure));
  }
  return findings;
}

std::string where_text(const Json& settings) {
  const std::string text = settings_text(settings);
  return text.empty() ? "" : " with " + text;
}

std::string exchange_of(const Run& run) {
  if (run.option_text("forward-only") == "true" || run.option_or("workers", 1) <= 1) return "";
  if (run.option_text("variable-update") == "independent") return "none";
  return run.option_text("async") == "true" ? "asynchronous" : "";
}

std::vector<std::vector<const Cell*>> same_work(const Study& study, const std::string& except) {
  std::vector<std::pair<Json, std::vector<const Cell*>>> groups;
  for (const Cell& cell : study.cells) {
    Json work = work_of(cell.example());
    work.erase(except);
    if (except == "variable-update" || except == "async") work.erase("exchange");
    const auto found = std::ranges::find_if(groups, [&](const auto& group) { return group.first == work; });
    if (found != groups.end()) {
      found->second.push_back(&cell);
    } else {
      groups.push_back({work, {&cell}});
    }
  }
  std::vector<std::vector<const Cell*>> result;
  for (auto& [work, cells] : groups) result.push_back(std::move(cells));
  return result;
}

const Cell& fastest(const std::vector<const Cell*>& cells) {
  return **std::ranges::max_element(cells, {}, &Cell::median_speed);
}

std::vector<const Cell*> not_told_apart(const Cell& best, const std::vector<const Cell*>& cells) {
  std::vector<const Cell*> others;
  for (const Cell* cell : cells) {
    if (cell != &best && !perf::compare(best.run_speeds(), cell->run_speeds()).is_supported()) others.push_back(cell);
  }
  return others;
}

std::string figure_ending(const std::vector<Figure>& figures, const std::string& suffix) {
  for (const Figure& figure : figures) {
    if (figure.id.size() >= suffix.size() &&
        figure.id.compare(figure.id.size() - suffix.size(), suffix.size(), suffix) == 0)
      return figure.id;
  }
  return figures.empty() ? "" : figures.front().id;
}

}  // namespace trireme::report
