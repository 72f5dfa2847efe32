#include "trireme/report/study.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "trireme/base/json.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/perf/statistics.hpp"

namespace trireme::report {
namespace {

using Options = std::vector<std::string>;

bool has_role(const std::string& option, config::Role role) {
  const config::Option* const declared = config::find_option(option);
  return declared != nullptr && declared->role == role;
}

// "parameters": how many the network has, as other frameworks count them.
bool is_ignored(const std::string& option) {
  return has_role(option, config::Role::measurement) || has_role(option, config::Role::run) || option == "parameters";
}

bool was_given(const Run& run, const std::string& option) {
  if (run.given) return std::ranges::find(*run.given, option) != run.given->end();
  std::string underscored = option;
  std::ranges::replace(underscored, '-', '_');
  return run.repeat_command.find("--" + option) != std::string::npos ||
         run.repeat_command.find("--" + underscored) != std::string::npos;
}

// Other frameworks have fewer options; their name includes the build.
bool has_setting(const Run& run, const std::string& option) {
  if (option == "gpu") return !run.gpu.empty();
  if (run.is_own() || option == "framework" || option == "side" || option == "machine" || option == "hosts")
    return true;
  return option != "build" && (run.options.contains(option) || (run.cell.is_object() && run.cell.contains(option)));
}

// Of several options. Other frameworks lack options they do not have.
Json settings_of(const Run& run, const std::vector<std::string>& options) {
  Json settings = Json::object();
  for (const std::string& option : options) {
    if (has_setting(run, option)) settings[option] = setting_of(run, option);
  }
  return settings;
}

std::size_t count_cells(const std::vector<Run>& runs, const std::vector<std::string>& options) {
  std::set<std::string> cells;
  for (const Run& run : runs) cells.insert(settings_of(run, options).dump());
  return cells.size();
}

bool differ(const std::vector<Run>& runs, const std::string& option) { return count_cells(runs, {option}) > 1; }

bool differ_within_a_side(const std::vector<Run>& runs, const std::string& option) {
  std::map<std::string, std::set<std::string>> values;
  for (const Run& run : runs) {
    if (is_setting(run, option)) values[run.side].insert(setting_of(run, option).dump());
  }
  return std::ranges::any_of(values, [](const auto& side) { return side.second.size() > 1; });
}

// Options that each separate cells the previous ones do not.
std::vector<std::string> varied_options(const std::vector<Run>& runs, std::vector<std::string> options,
                                        const std::vector<std::string>& more) {
  for (const std::string& option : more) {
    if (std::ranges::find(options, option) != options.end()) continue;
    Options with = options;
    with.push_back(option);
    if (count_cells(runs, with) > count_cells(runs, options)) options = std::move(with);
  }
  return options;
}

std::vector<std::string> planned_options(const std::vector<Run>& runs, const PlanSummary* plan) {
  std::vector<std::string> options;
  const auto add = [&](const std::string& option) {
    if (std::ranges::find(options, option) == options.end()) options.push_back(option);
  };
  if (plan != nullptr) {
    for (const std::string& option : plan->varied) add(option);
  }
  for (const Run& run : runs) {
    if (!run.cell.is_object()) continue;
    for (const auto& [option, value] : run.cell.items()) add(option);
  }
  return options;
}

// The study's own options that differ; one value is not a dimension.
Options varied_by_plan(const std::vector<Run>& runs, const PlanSummary* plan) {
  Options options = planned_options(runs, plan);
  std::erase(options, "framework");
  std::erase_if(options, [&](const std::string& option) { return !differ(runs, option); });
  if (differ(runs, "framework")) options.insert(options.begin(), "framework");
  return options;
}

// All but the identity, if runs of one side differ in them.
Options other_options(const std::vector<Run>& runs) {
  const Options identity = config::identity();
  std::set<std::string> known(identity.begin(), identity.end());
  Options options;
  for (const Run& run : runs) {
    for (const auto& [option, value] : run.options.items()) {
      if (known.insert(option).second) options.push_back(option);
    }
  }
  std::erase_if(options, [&](const std::string& option) { return !differ_within_a_side(runs, option); });
  return options;
}

std::set<std::string> distinct(const std::vector<Run>& runs, std::string Run::*of) {
  std::set<std::string> values;
  for (const Run& run : runs) values.insert(run.*of);
  return values;
}

// Machine and build, if several. Between two sides they are what is compared: see baseline.hpp.
Options origin_options(const std::vector<Run>& runs, std::vector<std::string>& warnings) {
  Options options;
  if (!runs.front().side.empty()) return options;
  const auto add = [&](const char* option, const std::set<std::string>& values) {
    if (values.size() < 2) return;
    options.emplace_back(option);
    warnings.push_back(fmt::format("Runs of {} {}s ({}): they are shown apart and never compared.", values.size(),
                                   option, fmt::join(values, "; ")));
  };
  add("machine", distinct(runs, &Run::machine_line));
  std::set<std::string> gpus = distinct(runs, &Run::gpu);
  gpus.erase("");  // comparing a machine's GPU with its CPU is fine
  add("gpu", gpus);
  std::vector<Run> own = runs;
  std::erase_if(own, [](const Run& run) { return !run.is_own(); });
  add("build", distinct(own, &Run::build_line));
  return options;
}

// The same settings on different hosts.
void add_hosts(const std::vector<Run>& runs, Options& options, std::vector<std::string>& warnings) {
  if (!differ_within_a_side(runs, "hosts")) return;
  Options with = varied_options(runs, options, {"hosts"});
  if (with.size() == options.size()) return;
  options = std::move(with);
  std::set<std::string> hosts;
  for (const Run& run : runs) hosts.insert(value_text(setting_of(run, "hosts")));
  warnings.push_back(fmt::format("Runs of one configuration were on different hosts ({}): they are shown apart.",
                                 fmt::join(hosts, "; ")));
}

Options joined(Options first, const Options& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// Each separately, including those that differ together with another.
Options separating(const std::vector<Run>& runs, const Options& base, const Options& more) {
  Options found;
  for (const std::string& option : more) {
    if (varied_options(runs, base, {option}).size() > base.size()) found.push_back(option);
  }
  return found;
}

// The plan's varied options, whatever else separates runs it considers equal, and machine, build, side and hosts if
// they differ. Runs: at least one, all measured. Warnings name what no plan asked for.
std::vector<std::string> choose_options(const std::vector<Run>& runs, const PlanSummary* plan, const std::string& title,
                                        std::vector<std::string>& warnings) {
  const Options planned = varied_by_plan(runs, plan), others = other_options(runs);
  const Options identity = config::identity();
  const bool is_planned = !runs.front().study_name.empty();
  std::vector<std::string> origin_warnings;
  const Options origin = origin_options(runs, origin_warnings);
  Options options = varied_options(runs, planned, identity);
  // A build's defaults belong to the build.
  const Options apart = joined(options, origin), with_others = varied_options(runs, apart, others);
  if (is_planned && with_others.size() > joined(planned, origin).size()) {
    const Options differing =
        joined(separating(runs, planned, identity), separating(runs, joined(planned, origin), others));
    warnings.push_back(
        fmt::format("Runs of one cell of '{}' differ in {}: they are shown apart.", title, fmt::join(differing, ", ")));
  }
  warnings.insert(warnings.end(), origin_warnings.begin(), origin_warnings.end());
  options.insert(options.end(), with_others.begin() + std::ssize(apart), with_others.end());
  options = joined(std::move(options), origin);
  if (!runs.front().side.empty()) options.emplace_back("side");
  add_hosts(runs, options, warnings);
  return options;
}

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
  speeds.reserve(runs.size());
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

// Of facts of a run that are not its options: values that need no name.
bool speaks_for_itself(const std::string& fact) {
  return fact == "framework" || fact == "machine" || fact == "mode" || fact == "label";
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
  const config::Option* const declared = config::find_option(option);
  return declared != nullptr && !declared->title.empty() ? declared->title : option;
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

Json setting_of(const Run& run, const std::string& option) {
  if (option == "framework") return run.framework;
  if (option == "side") return run.side;
  if (option == "machine") return run.machine_line;
  if (option == "gpu") return run.gpu;
  if (option == "hosts") return fmt::format("{}", fmt::join(run.hosts, " + "));
  if (option == "build") return run.build_line;
  if (run.cell.is_object() && run.cell.contains(option)) return field(run.cell, {option.c_str()});
  return field(run.options, {option.c_str()});
}

bool is_setting(const Run& run, const std::string& option) {
  if (option == "hosts") return !run.hosts.empty();
  if (!run.options.contains(option) || is_ignored(option)) return false;
  return !has_role(option, config::Role::chosen) || was_given(run, option);
}

}  // namespace trireme::report
