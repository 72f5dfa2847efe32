#include "trireme/lab/study/study_cells.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <span>

#include "trireme/base/error.hpp"
#include "trireme/base/hash.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/lab/study/trial.hpp"

namespace trireme::lab {
namespace {

constexpr std::size_t kMostCombinations = 1'000'000;  // and parts of them that are tried
constexpr std::size_t kLongestSlug = 120;             // file systems allow 255 bytes, including the suffix

std::string text_of(const Json& varied) {
  std::string text;
  for (const auto& [name, value] : varied.items()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value_text(value));
  }
  return text;
}

std::string in_words(const StudyCell& cell) {
  return cell.varied.empty() ? "the only cell" : fmt::format("the cell '{}'", text_of(cell.varied));
}

// Resolves names in the formulas of one cell.
class CellNames {
 public:
  CellNames(const StudyPlan& plan, const StudyCell& cell) : plan_(plan), cell_(cell) {}

  FormulaValue operator()(const std::string& name) const {
    if (const auto value = fact(name, plan_.machine, cell_.configuration)) return *value;
    if (const Json* value = find(cell_.configuration, name)) return known(name, *value);
    if (cell_.varied.contains(name)) return formula_value(cell_.varied[name]);
    if (name == "workers") return 1.0;
    if (name == "ps") return 0.0;
    missing(name);
  }

 private:
  // A formula may use another, but not itself.
  FormulaValue known(const std::string& name, const Json& value) const {
    const auto text = formula_text(value);
    if (!text) return formula_value(value);
    if (std::ranges::find(asked_, name) != asked_.end()) bad_input("{} depends on itself", name);
    CellNames deeper = *this;
    deeper.asked_.push_back(name);
    return Formula(*text, name).evaluate(deeper);
  }
  [[noreturn]] void missing(const std::string& name) const {
    std::vector<std::string> names{"cores", "hardware-threads", "hosts", "workers", "ps"};
    for (const Setting& setting : cell_.configuration) names.push_back(setting.option);
    for (const auto& [axis, value] : cell_.varied.items()) names.push_back(axis);
    std::ranges::sort(names);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    bad_input("there is no '{}' in {}, which has {}; other options can be set in fixed", name, in_words(cell_),
              fmt::join(names, ", "));
  }

  const StudyPlan& plan_;
  const StudyCell& cell_;
  std::vector<std::string> asked_;  // formulas being evaluated
};

void resolve_formulas(const StudyPlan& plan, StudyCell& cell) {
  const StudyCell unresolved = cell;
  for (Setting& setting : cell.configuration) {
    if (!formula_text(setting.value)) continue;
    try {
      setting.value = json_value(CellNames(plan, unresolved)(setting.option));
    } catch (const Error& error) {
      bad_input("{}: {}: {}", plan.file, in_words(unresolved), error.what());
    }
  }
  for (auto& [name, value] : cell.varied.items()) {
    const Json* resolved = find(cell.configuration, name);
    if (resolved != nullptr && formula_text(value)) value = *resolved;
  }
}

// Checks formula results; plain values were checked when the plan was read. `written` has the formulas.
void check_values(const StudyPlan& plan, const StudyCell& cell, const Configuration& written,
                  const OptionCatalog& options) {
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto formula = formula_text(written[i].value);
    if (!formula) continue;
    const std::string where = fmt::format("{}: {}: '={}'", plan.file, in_words(cell), *formula);
    config::check(options.get(written[i].option, where), cell.configuration[i].value, where);
  }
}

bool sets(const Configuration& configuration, const std::string& option) {
  return find(configuration, option) != nullptr;
}

// The number of axes, from the first, that have to be decided before this constraint can be judged. All of them if it
// depends on a formula, which is resolved last, or if a name is unknown, which the whole cell explains best.
std::size_t axes_needed(const StudyPlan& plan, const Formula& constraint) {
  std::size_t needed = 0;
  for (const std::string& name : constraint.names()) {
    bool is_known = name == "workers" || name == "ps" || sets(plan.fixed, name);
    if (fact(name, plan.machine, plan.fixed)) {
      if (name == "hosts") return plan.axes.size();  // follows from several options
      is_known = true;
    }
    if (const Json* value = find(plan.fixed, name); value != nullptr && formula_text(*value)) return plan.axes.size();
    for (std::size_t i = 0; i < plan.axes.size(); ++i) {
      for (const Choice& choice : plan.axes[i].choices) {
        const Json* value = find(choice.settings, name);
        if (value == nullptr && plan.axes[i].name != name) continue;
        if (formula_text(value != nullptr ? *value : choice.value)) return plan.axes.size();
        is_known = true;
        needed = std::max(needed, i + 1);
      }
    }
    if (!is_known) return plan.axes.size();
  }
  return needed;
}

// Visits the combinations that the constraints allow, the first axis slowest. Each constraint is judged as soon as its
// axes are decided: most combinations are never made.
class Combinations {
 public:
  using Visit = std::function<void(StudyCell cell, const Configuration& written)>;  // `written` has the formulas

  Combinations(const StudyPlan& plan, Visit visit)
      : plan_(plan), visit_(std::move(visit)), constraints_(plan.axes.size() + 1) {
    for (const Formula& constraint : plan.constraints) {
      constraints_[axes_needed(plan, constraint)].push_back(&constraint);
    }
  }
  void visit_all() { extend({.varied = Json::object(), .configuration = plan_.fixed, .slug = ""}, 0); }

 private:
  bool is_allowed(const StudyCell& cell, std::size_t decided) const {
    return std::ranges::all_of(constraints_[decided],
                               [&](const Formula* constraint) { return constraint->holds(CellNames(plan_, cell)); });
  }
  void extend(const StudyCell& cell, std::size_t decided) {
    if (++tried_ > kMostCombinations) bad_input("the plan has more than {} combinations", kMostCombinations);
    if (decided == plan_.axes.size()) {
      StudyCell resolved = cell;
      resolve_formulas(plan_, resolved);
      if (is_allowed(resolved, decided)) visit_(std::move(resolved), cell.configuration);
      return;
    }
    if (!is_allowed(cell, decided)) return;
    const Axis& axis = plan_.axes[decided];
    for (const Choice& choice : axis.choices) {
      StudyCell next = cell;
      next.varied[axis.name] = choice.value;
      next.configuration.insert(next.configuration.end(), choice.settings.begin(), choice.settings.end());
      extend(next, decided + 1);
    }
  }

  const StudyPlan& plan_;
  Visit visit_;
  std::vector<std::vector<const Formula*>> constraints_;  // by the number of axes that they need
  std::size_t tried_ = 0;
};

}  // namespace

std::string cell_text(const StudyCell& cell) {
  const std::string text = cell.varied.empty() ? "the only cell" : text_of(cell.varied);
  return cell.framework.empty() ? text : text + " " + cell.framework;
}

// Letters, digits and a few signs. A hash of the text replaces what is lost.
std::string slug_of(const Json& varied) {
  if (varied.empty()) return "cell";
  std::string slug;
  bool is_exact = true;
  for (const auto& [name, value] : varied.items()) {
    if (!slug.empty()) slug += '_';
    for (const char c : fmt::format("{}-{}", name, value_text(value))) {
      const bool is_plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-';
      slug += is_plain ? c : '-';
      is_exact = is_exact && is_plain;
    }
  }
  if (is_exact && slug.size() <= kLongestSlug) return slug;
  const std::string text = text_of(varied);
  return fmt::format("{}-{:08x}", slug.substr(0, kLongestSlug),
                     hash_bytes(std::as_bytes(std::span(text))) & 0xffffffffu);
}

std::vector<std::string> run_command(const StudyCell& cell, const std::string& program) {
  if (!cell.peer_command.empty()) return cell.peer_command;
  std::vector<std::string> words = command_words(cell.configuration);
  words.insert(words.begin(), program);
  return words;
}

std::string repeat_line(const StudyCell& cell) {
  if (!cell.peer_command.empty()) return shell_line(cell.peer_command);
  return "trireme " + shell_line(command_words(cell.configuration));
}

std::vector<StudyCell> cells_of(const StudyPlan& plan, const OptionCatalog& options) {
  std::vector<StudyCell> cells;
  std::map<std::string, std::string> settings;  // of the cell with each slug
  const auto add = [&](StudyCell cell, const Configuration& written) {
    check_values(plan, cell, written, options);
    cell.slug = slug_of(cell.varied);
    const auto [same, is_new] = settings.emplace(cell.slug, to_text(cell.configuration));
    if (!is_new && same->second != to_text(cell.configuration)) {
      bad_input("{}: two cells would both be called {}, one with {}, the other with {}; give them different labels",
                plan.file, cell.slug, same->second, to_text(cell.configuration));
    }
    if (is_new) cells.push_back(std::move(cell));
  };
  Combinations(plan, add).visit_all();
  if (cells.empty()) {
    std::size_t count = 1;
    for (const Axis& axis : plan.axes) count *= axis.choices.size();
    bad_input("{}: the constraints leave none of its {} combinations on this machine", plan.file, count);
  }
  return cells;
}

}  // namespace trireme::lab
