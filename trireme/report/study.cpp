#include "trireme/report/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "trireme/base/json_fields.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/perf/statistics.hpp"
#include "trireme/report/study_options.hpp"

namespace trireme::report {
namespace {

// Versions of another framework differ as much as frameworks do.
void name_versions(std::vector<Run>& runs, Study& study) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> versions;  // by framework and side
  for (const Run& run : runs) {
    if (!run.is_own()) versions[run.framework][run.side].insert(run.build_line);
  }
  for (const auto& [framework, sides] : versions) {
    const auto several = std::ranges::find_if(sides, [](const auto& side) { return side.second.size() > 1; });
    if (several == sides.end()) continue;
    study.warnings.push_back(fmt::format("Runs of {} versions of {} ({}) are shown separately.", several->second.size(),
                                         framework, fmt::join(several->second, "; ")));
    for (Run& run : runs) {
      if (run.framework == framework) run.framework += " " + run.build_line;
    }
  }
}

std::vector<double> speeds_of(const std::vector<Run>& runs) {
  if (runs.size() == 1 && runs.front().speed_per_repeat().size() > 1) return runs.front().speed_per_repeat();
  std::vector<double> speeds;
  for (const Run& run : runs) speeds.push_back(run.images_per_second());
  return speeds;
}

void add_cells(const std::vector<Run>& runs, const std::vector<std::string>& options, Study& study) {
  std::map<std::string, std::size_t> places;
  for (const Run& run : runs) {
    Json settings = settings_of(run, options);
    const auto [place, is_new] = places.try_emplace(settings.dump(), study.cells.size());
    if (is_new) study.cells.push_back({.settings = std::move(settings), .label = {}, .runs = {}, .speeds = {}});
    study.cells[place->second].runs.push_back(run);
  }
  for (Cell& cell : study.cells) {
    cell.speeds = speeds_of(cell.runs);
    cell.label = settings_text(cell.settings);
    if (cell.label.empty()) cell.label = cell.example().option_text("model");
    if (cell.label.empty()) cell.label = "all runs";
  }
}

void add_dimensions(const std::vector<std::string>& options, Study& study) {
  for (const std::string& option : options) {
    Dimension dimension{.option = option, .values = {}};
    for (const Cell& cell : study.cells) {
      if (!cell.settings.contains(option)) continue;
      const Json value = field(cell.settings, {option.c_str()});
      if (std::ranges::find(dimension.values, value) == dimension.values.end()) dimension.values.push_back(value);
    }
    if (dimension.values.size() < 2) continue;
    if (dimension.is_numeric()) std::ranges::sort(dimension.values);
    if (option == "forward-only") std::sort(dimension.values.rbegin(), dimension.values.rend());  // forward first
    study.dimensions.push_back(std::move(dimension));
  }
}

// By the order of the dimensions' values, first dimension slowest, whatever the order of files.
void sort_cells(Study& study) {
  const auto place = [&](const Cell& cell) {
    std::vector<std::ptrdiff_t> places;
    for (const Dimension& dimension : study.dimensions) {
      const Json value = field(cell.settings, {dimension.option.c_str()});
      places.push_back(std::ranges::find(dimension.values, value) - dimension.values.begin());
    }
    return places;
  };
  std::ranges::stable_sort(study.cells, {}, place);
}

Study make_study(const std::string& name, const std::vector<Run>& all, const PlanSummary* plan) {
  Study study;
  study.id = name.empty() ? "runs" : slug(name);
  study.title = plan != nullptr && !plan->title.empty() ? plan->title : name.empty() ? "Runs" : name;
  study.kind = all.front().figure_kind;
  if (plan != nullptr) {
    study.question = plan->question;
    study.source = plan->source;
    if (study.kind.empty()) study.kind = plan->figure;
  }
  std::vector<Run> runs;
  for (const Run& run : all) (run.is_measured() ? runs : study.failed).push_back(run);
  if (runs.empty()) return study;
  name_versions(runs, study);
  const std::vector<std::string> options = choose_options(runs, plan, study.title, study.warnings);
  add_cells(runs, options, study);
  add_dimensions(options, study);
  sort_cells(study);
  return study;
}

std::string counted(const Json& value, const char* one, const char* many) {
  return fmt::format("{} {}", value_text(value), value == Json(1) ? one : many);
}

// Of facts of a run that are not its options: values that need no name.
bool speaks_for_itself(const std::string& fact) {
  return fact == "framework" || fact == "machine" || fact == "protocol" || fact == "mode" || fact == "label";
}

}  // namespace

bool Dimension::is_numeric() const {
  return std::ranges::all_of(values, [](const Json& value) { return value.is_number(); });
}

double Cell::median_speed() const { return perf::median(speeds); }

std::vector<double> Cell::run_speeds() const { return is_one_run() ? std::vector<double>{median_speed()} : speeds; }

const Dimension* Study::dimension(const std::string& option) const {
  const auto found = std::ranges::find(dimensions, option, &Dimension::option);
  return found == dimensions.end() ? nullptr : &*found;
}

std::vector<const Dimension*> Study::numeric_dimensions() const {
  std::vector<const Dimension*> numeric;
  for (const Dimension& dimension : dimensions) {
    if (dimension.is_numeric()) numeric.push_back(&dimension);
  }
  return numeric;
}

const Cell* Study::find(const Json& settings) const {
  const auto found = std::ranges::find(cells, settings, &Cell::settings);
  return found == cells.end() ? nullptr : &*found;
}

std::vector<Study> make_studies(const RecordSet& records) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<Run>> runs;
  for (const Run& run : records.runs) {
    if (runs.count(run.study_name) == 0) names.push_back(run.study_name);
    runs[run.study_name].push_back(run);
  }
  std::vector<Study> studies;
  for (const std::string& name : names) {
    const auto plan = records.plans.find(name);
    studies.push_back(make_study(name, runs[name], plan == records.plans.end() ? nullptr : &plan->second));
  }
  return studies;
}

bool are_comparable(const Cell& first, const Cell& second) {
  for (const char* origin : {"machine", "gpu", "build"}) {
    const bool both_have = first.settings.contains(origin) && second.settings.contains(origin);
    if (both_have && first.settings[origin] != second.settings[origin]) return false;
  }
  return true;
}

std::string setting_text(const std::string& option, const Json& value) {
  if (option == "workers") return counted(value, "worker", "workers");
  if (option == "ps") return counted(value, "server", "servers");
  if (const config::Option* declared = config::find_option(option); declared != nullptr && !declared->label.empty()) {
    return config::label_of(*declared, value);
  }
  if (option == "build") return "build " + value_text(value);
  if (speaks_for_itself(option)) return value_text(value);
  if (value.is_string() && !value.get<std::string>().empty() && std::isupper(value.get<std::string>()[0]))
    return value_text(value);  // a plan's label
  return option + " " + value_text(value);
}

std::string settings_text(const Json& settings) {
  std::string text;
  for (const auto& [option, value] : settings.items()) {
    if (!text.empty()) text += ", ";
    text += setting_text(option, value);
  }
  return text;
}

std::string option_title(const std::string& option) {
  if (option == "ps") return "parameter servers";
  const config::Option* const declared = config::find_option(option);
  if (declared != nullptr && !declared->title.empty()) return declared->title;
  return option;
}

std::string slug(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0 && letter < 128) {
      result += static_cast<char>(std::tolower(letter));
    } else if (!result.empty() && result.back() != '-') {
      result += '-';
    }
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result.empty() ? "x" : result;
}

}  // namespace trireme::report
