#include "trireme/report/study_options.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "trireme/base/json_fields.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::report {
namespace {

using Options = std::vector<std::string>;

bool has_role(const std::string& option, config::Role role) {
  const config::Option* const declared = config::find_option(option);
  return declared != nullptr && declared->role == role;
}

// "parameters": how many the network has, as other frameworks count them.
bool is_ignored(const std::string& option) {
  return has_role(option, config::Role::measurement) || has_role(option, config::Role::output) ||
         option == "parameters";
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

}  // namespace

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

Json settings_of(const Run& run, const std::vector<std::string>& options) {
  Json settings = Json::object();
  for (const std::string& option : options) {
    if (has_setting(run, option)) settings[option] = setting_of(run, option);
  }
  return settings;
}

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

}  // namespace trireme::report
