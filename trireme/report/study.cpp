#include "trireme/report/study.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "trireme/perf/statistics.hpp"
#include "trireme/report/json_fields.hpp"

namespace trireme::report {
namespace {

// Options by which cells are told apart, in this order, where records do not say what a study varies.
constexpr const char* kIdentity[] = {"model",   "device", "precision",         "forward-only", "data-name",
                                     "workers", "ps",     "num-intra-threads", "batch-size",   "variable-update"};

// How long a run measured and where it kept its notes does not make it another configuration; nor do rates, which
// cost nothing.
const std::set<std::string>& ignored_options() {
  static const std::set<std::string> options{
      "num-batches", "num-warmup-batches", "repeats", "display-every", "max-seconds",        "tune-cache",
      "seed",        "network-file",       "profile", "baseline",      "init-learning-rate", "learning-rate-schedule"};
  return options;
}

Json setting_of(const Run& run, const std::string& option) {
  if (option == "framework") return run.framework;
  if (option == "side") return run.side;
  if (option == "machine") return run.machine;
  if (option == "build") return run.build;
  if (run.cell.is_object() && run.cell.contains(option)) return field(run.cell, {option.c_str()});
  return field(run.options, {option.c_str()});
}

Json settings_of(const Run& run, const std::vector<std::string>& options) {
  Json settings = Json::object();
  for (const std::string& option : options) settings[option] = setting_of(run, option);
  return settings;
}

std::size_t count_cells(const std::vector<Run>& runs, const std::vector<std::string>& options) {
  std::set<std::string> cells;
  for (const Run& run : runs) cells.insert(settings_of(run, options).dump());
  return cells.size();
}

bool was_given(const Run& run, const std::string& option) {
  std::string underscored = option;
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  return run.command.find("--" + option) != std::string::npos ||
         run.command.find("--" + underscored) != std::string::npos;
}

// What else may tell cells apart: options that the study does not speak of. Where there is no study, also those that
// somebody has set on some command line; what a run has chosen by itself is a result of it, not a setting.
std::vector<std::string> candidates(const std::vector<Run>& runs, bool is_planned) {
  std::vector<std::string> options(std::begin(kIdentity), std::end(kIdentity));
  if (is_planned) return options;
  std::set<std::string> known(options.begin(), options.end());
  for (const Run& run : runs) {
    for (const auto& [option, value] : run.options.items()) {
      if (known.count(option) > 0 || ignored_options().count(option) > 0 || !was_given(run, option)) continue;
      known.insert(option);
      options.push_back(option);
    }
  }
  return options;
}

// Options of which each separates cells that those before it do not.
std::vector<std::string> varied_options(const std::vector<Run>& runs, std::vector<std::string> options,
                                        const std::vector<std::string>& more) {
  for (const std::string& option : more) {
    if (std::find(options.begin(), options.end(), option) != options.end()) continue;
    std::vector<std::string> with = options;
    with.push_back(option);
    if (count_cells(runs, with) > count_cells(runs, options)) options = std::move(with);
  }
  return options;
}

std::vector<std::string> planned_options(const std::vector<Run>& runs, const StudyPlan* plan) {
  std::vector<std::string> options;
  const auto add = [&](const std::string& option) {
    if (std::find(options.begin(), options.end(), option) == options.end()) options.push_back(option);
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

bool differ(const std::vector<Run>& runs, const std::string& option) { return count_cells(runs, {option}) > 1; }

// Those of the study's own option that have one value are no dimension.
std::vector<std::string> choose_options(const std::vector<Run>& runs, const StudyPlan* plan, Study& study) {
  std::vector<std::string> options = planned_options(runs, plan);
  std::erase_if(options, [&](const std::string& option) { return !differ(runs, option); });
  if (differ(runs, "framework")) options.insert(options.begin(), "framework");
  const bool is_planned = !runs.empty() && !runs.front().study.empty();
  const std::size_t planned = options.size();
  options = varied_options(runs, std::move(options), candidates(runs, is_planned));
  if (is_planned && options.size() > planned) {
    study.warnings.push_back(
        fmt::format("Runs of one cell of '{}' differ in {}: they are shown apart.", study.title,
                    fmt::join(options.begin() + static_cast<std::ptrdiff_t>(planned), options.end(), ", ")));
  }
  return options;
}

// Machines and builds of runs that know theirs.
std::set<std::string> distinct(const std::vector<Run>& runs, std::string Run::*of, Json Run::*facts, bool own_only) {
  std::set<std::string> values;
  for (const Run& run : runs) {
    if ((run.*facts).is_object() && (!own_only || run.framework == "trireme")) values.insert(run.*of);
  }
  return values;
}

// Between two sides, machine and build are what is compared: baseline.hpp sees to them.
void add_origin_options(const std::vector<Run>& runs, std::vector<std::string>& options, Study& study) {
  if (!runs.front().side.empty()) {
    options.emplace_back("side");
    return;
  }
  const auto machines = distinct(runs, &Run::machine, &Run::machine_facts, false);
  if (machines.size() > 1) {
    options.push_back("machine");
    study.warnings.push_back(fmt::format("Runs of {} machines ({}): they are shown apart and never compared.",
                                         machines.size(), fmt::join(machines, "; ")));
  }
  const auto builds = distinct(runs, &Run::build, &Run::build_facts, true);
  if (builds.size() > 1) {
    options.push_back("build");
    study.warnings.push_back(fmt::format("Runs of {} builds ({}): they are shown apart and never compared.",
                                         builds.size(), fmt::join(builds, "; ")));
  }
}

std::vector<double> speeds_of(const std::vector<Run>& runs) {
  if (runs.size() == 1 && runs.front().speed_per_repeat.size() > 1) return runs.front().speed_per_repeat;
  std::vector<double> speeds;
  for (const Run& run : runs) speeds.push_back(run.images_per_second);
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
      const Json value = field(cell.settings, {option.c_str()});
      if (std::find(dimension.values.begin(), dimension.values.end(), value) == dimension.values.end())
        dimension.values.push_back(value);
    }
    if (dimension.values.size() < 2) continue;
    if (dimension.is_numeric()) std::sort(dimension.values.begin(), dimension.values.end());
    if (option == "forward-only") std::sort(dimension.values.rbegin(), dimension.values.rend());  // forward comes first
    study.dimensions.push_back(std::move(dimension));
  }
}

// Cells in the order of the dimensions' values, the first dimension slowest, whatever order the files had.
void sort_cells(Study& study) {
  const auto place = [&](const Cell& cell) {
    std::vector<std::ptrdiff_t> places;
    for (const Dimension& dimension : study.dimensions) {
      const Json value = field(cell.settings, {dimension.option.c_str()});
      places.push_back(std::find(dimension.values.begin(), dimension.values.end(), value) - dimension.values.begin());
    }
    return places;
  };
  std::stable_sort(study.cells.begin(), study.cells.end(),
                   [&](const Cell& a, const Cell& b) { return place(a) < place(b); });
}

Study make_study(const std::string& name, const std::vector<Run>& all, const StudyPlan* plan) {
  Study study;
  study.id = name.empty() ? "runs" : slug(name);
  study.title = plan != nullptr && !plan->title.empty() ? plan->title : name.empty() ? "Runs" : name;
  study.kind = all.front().kind;
  if (plan != nullptr) {
    study.question = plan->question;
    study.source = plan->source;
    if (study.kind.empty()) study.kind = plan->figure;
  }
  std::vector<Run> runs;
  for (const Run& run : all) (run.is_measured() ? runs : study.failed).push_back(run);
  if (runs.empty()) return study;
  std::vector<std::string> options = choose_options(runs, plan, study);
  add_origin_options(runs, options, study);
  add_cells(runs, options, study);
  add_dimensions(options, study);
  sort_cells(study);
  return study;
}

}  // namespace

bool Dimension::is_numeric() const {
  return std::all_of(values.begin(), values.end(), [](const Json& value) { return value.is_number(); });
}

double Cell::median_speed() const { return perf::median(speeds); }

const Dimension* Study::dimension(const std::string& option) const {
  const auto found = std::find_if(dimensions.begin(), dimensions.end(),
                                  [&](const Dimension& dimension) { return dimension.option == option; });
  return found == dimensions.end() ? nullptr : &*found;
}

const Cell* Study::find(const Json& settings) const {
  const auto found =
      std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.settings == settings; });
  return found == cells.end() ? nullptr : &*found;
}

std::vector<Study> make_studies(const RecordSet& records) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<Run>> runs;
  for (const Run& run : records.runs) {
    if (runs.count(run.study) == 0) names.push_back(run.study);
    runs[run.study].push_back(run);
  }
  std::vector<Study> studies;
  for (const std::string& name : names) {
    const auto plan = records.plans.find(name);
    studies.push_back(make_study(name, runs[name], plan == records.plans.end() ? nullptr : &plan->second));
  }
  return studies;
}

bool are_comparable(const Cell& first, const Cell& second) {
  for (const char* origin : {"machine", "build"}) {
    if (field(first.settings, {origin}) != field(second.settings, {origin})) return false;
  }
  return true;
}

}  // namespace trireme::report
