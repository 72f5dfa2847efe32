// `trireme sweep`: measures a matrix of configurations, each several times, into a resumable folder.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/option_catalog.hpp"
#include "cli/study_plans.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/text_table.hpp"
#include "trireme/cluster/launch_hosts.hpp"
#include "trireme/config/tables.hpp"
#include "trireme/lab/study/duration.hpp"
#include "trireme/lab/study/ready_plans.hpp"
#include "trireme/report/finding_text.hpp"
#include "trireme/report/findings.hpp"

namespace trireme::cli {
namespace {

struct SweepArguments {
  std::string plan, out, budget;
  std::string run_limit = "30m";
  std::optional<std::int64_t> repeats;
  std::vector<std::string> set;
  bool dry_run = false, list = false, retry_failed = false;
};

int list_plans() {
  TextTable table({{"plan"}, {"question"}});
  for (const lab::ReadyPlan& ready : lab::ready_plans()) {
    table.add_row({std::string(ready.name), Json::parse(ready.text).value("question", "")});
  }
  std::fputs(table.text().c_str(), stdout);
  std::fputs("\nTo see what a plan would run here: trireme sweep NAME --dry-run\n", stdout);
  return 0;
}

lab::StudyPlan resolve_plan(const SweepArguments& arguments, const lab::OptionCatalog& options) {
  Json json = find_plan(arguments.plan);
  for (const std::string& assignment : arguments.set) lab::set_option(json, assignment, options);
  if (arguments.repeats && json.is_object()) json["repeats"] = *arguments.repeats;
  if (!arguments.budget.empty() && json.is_object()) {
    lab::parse_duration(arguments.budget, "--budget");
    json["budget"] = arguments.budget;
  }
  return lab::parse_plan(json, arguments.plan, options, this_machine());
}

// What can be claimed about the fastest, in the words of `trireme report`.
std::string best_text(const lab::SweepResult& result, const std::filesystem::path& folder) {
  const bool has_runs =
      std::ranges::any_of(result.cells, [](const lab::CellState& cell) { return !cell.images_per_second.empty(); });
  std::string text;
  if (!has_runs) return text;
  for (const report::Study& study : report::make_studies(report::load_records({folder}))) {
    for (const report::Finding& finding : report::best_findings(study)) text += report::text_of(finding) + "\n";
  }
  return text;
}

cluster::LaunchOptions launch_of(const lab::Configuration& configuration) {
  cluster::LaunchOptions launch;
  for (const lab::Setting& setting : configuration) {
    if (const config::Option* option = config::launch_table().find(setting.option)) option->set(&launch, setting.value);
  }
  return launch;
}

// Of the cells that `trireme bench` would refuse, in its words.
std::vector<std::string> problems_of(const std::vector<lab::StudyCell>& cells, const CommandCheck& check_options) {
  std::vector<std::string> problems;
  for (const lab::StudyCell& cell : cells) {
    const cluster::LaunchOptions launch = launch_of(cell.configuration);
    if (launch.hosts.are_given()) continue;  // what suits other hosts is known there
    std::vector<std::string> words = lab::command_words(cell.configuration);
    if (const auto end = std::ranges::find(words, "--"); end != words.end()) words.erase(words.begin(), end + 1);
    try {
      check_options(words,
                    {.workers = static_cast<int>(launch.workers.value_or(1)), .servers = static_cast<int>(launch.ps)});
    } catch (const Error& error) {
      problems.push_back(fmt::format("{}: {}", lab::cell_text(cell), error.what()));
    }
  }
  return problems;
}

int run_sweep(const SweepArguments& arguments, const CommandCheck& check_options) {
  if (arguments.list) return list_plans();
  const lab::OptionCatalog options = option_catalog();
  const lab::StudyPlan plan = resolve_plan(arguments, options);
  const std::vector<lab::StudyCell> cells = lab::cells_of(plan, options);
  const lab::SweepSetup setup{.plan = plan,
                              .cells = cells,
                              .schedule = lab::make_schedule(cells.size(), static_cast<int>(plan.repeats)),
                              .program = cluster::this_binary(),
                              .run_limit_seconds = lab::parse_duration(arguments.run_limit, "--run-limit"),
                              .retry_failed = arguments.retry_failed};
  const std::filesystem::path out = arguments.out.empty() ? plan.name : arguments.out;
  const StudyRun study{.setup = setup,
                       .out = out,
                       .plan = to_json(plan),
                       .who = "a sweep",
                       .conclusion = [&](const lab::SweepResult& result) {
                         return "\n" + result_table(cells, result) + best_text(result, out) +
                                shortfall_text(cells, result);
                       }};
  if (!arguments.dry_run) return run_study(study);
  dry_run(study);
  const std::vector<std::string> problems = problems_of(cells, check_options);
  if (problems.empty()) return 0;
  fmt::print("\n{} of {} cells cannot run here:\n", problems.size(), cells.size());
  for (const std::string& problem : problems) fmt::print("  {}\n", problem);
  return exit_code(ErrorKind::bad_input);
}

}  // namespace

Command add_sweep(CLI::App& parent, const CommandCheck& check_options) {
  CLI::App* app = parent.add_subcommand(
      "sweep",
      "Measure a matrix of configurations, each several times, with one record per run in a folder. Run it again with\n"
      "the same folder to continue, however it ended.");
  auto arguments = std::make_shared<SweepArguments>();
  app->add_option("plan", arguments->plan, "Plan: a JSON file, or the name of a ready-made plan (--list)");
  app->add_option("--out", arguments->out, "Folder for the results (default: the plan's name, in the current folder)");
  app->add_option("--repeats", arguments->repeats, "Runs of each cell (default: from the plan, or 5)");
  app->add_option(
      "--budget", arguments->budget,
      "Time limit for this sweep, such as 20m or 1h30m; runs that would not finish in time are not started\n"
      "(default: from the plan, or none)");
  app->add_option("--run-limit", arguments->run_limit, "Time after which a run counts as failed")
      ->capture_default_str();
  app->add_option(
         "--set", arguments->set,
         "Set an option of bench or launch for all cells, as option=value; for an option that the plan varies,\n"
         "option=a,b keeps only these values. May be repeated")
      ->allow_extra_args(false);
  app->add_flag("--retry-failed", arguments->retry_failed, "Repeat cells that failed in an earlier sweep");
  app->add_flag("--dry-run", arguments->dry_run,
                "Show the cells, their commands and the time, and check all values, without running anything");
  app->add_flag("--list", arguments->list, "List the ready-made plans");
  return {app, [arguments, check_options] { return run_sweep(*arguments, check_options); }};
}

}  // namespace trireme::cli
