// `trireme launch`: starts a command as several processes, on this machine or several hosts, and supervises them; or
// submits the same as a Slurm job.
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/table_options.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/launch_plan.hpp"
#include "trireme/cluster/supervisor.hpp"
#include "trireme/config/tables.hpp"

namespace trireme::cli {
namespace {

constexpr const char* kOutputFile = "slurm-%j.out";
// Slurm asks the launch to end 30 s before its time is up, so that results are written.
constexpr const char* kSignalAtEnd = "B:TERM@30";

// As given by the user, without sbatch options and without the command after --.
std::vector<std::string> launch_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool is_for_us = option->get_group() == config::kSubmitGroup || name == "--dry-run";
    if (option->count() == 0 || option->get_positional() || is_for_us) continue;
    if (option->get_items_expected_max() == 0) {
      words.push_back(name);
    } else {
      for (const std::string& value : option->results()) words.push_back(name + "=" + value);
    }
  }
  return words;
}

// Most of the group's options have sbatch's names.
std::vector<std::string> sbatch_options(const cluster::LaunchOptions& options) {
  std::vector<std::string> words;
  for (const config::Option& each : config::launch_table()) {
    const Json value = each.get(&options);
    if (each.group == config::kSubmitGroup && (value.is_string() || value.is_number())) {
      words.push_back(fmt::format("{}", fmt::join(config::words_of(each.name, value), "=")));
    }
  }
  if (!options.submit.cpus_per_task) words.emplace_back("--exclusive");
  words.push_back(fmt::format("--output={}", kOutputFile));
  words.push_back(fmt::format("--signal={}", kSignalAtEnd));
  words.insert(words.end(), options.submit.more.begin(), options.submit.more.end());
  return words;
}

// The launch takes the shell's place: it is the process that Slurm asks to end.
std::string script_text(const CLI::App& app, const cluster::LaunchOptions& options) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& option : sbatch_options(options)) {
    if (option.find('\n') != std::string::npos) bad_input("'{}': an sbatch option must be on one line", option);
    text += fmt::format("#SBATCH {}\n", shell_quoted(option));
  }
  std::vector<std::string> words{cluster::this_binary(), "launch"};
  for (const auto& part : {launch_words(app), {"--"}, options.command})
    words.insert(words.end(), part.begin(), part.end());
  return text + fmt::format("exec {}\n", shell_line(words));
}

std::string output_path(const cluster::SubmitOptions& submit, const std::string& job) {
  std::string name = kOutputFile;
  for (const std::string& option : submit.more) {
    if (option.starts_with("--output=")) name = option.substr(option.find('=') + 1);
  }
  if (const std::size_t place = name.find("%j"); place != std::string::npos) name.replace(place, 2, job);
  return std::filesystem::absolute(name).string();
}

// A launch that is to be submitted becomes a batch script, which is handed to sbatch and holds the same launch: with
// the options that the user has given, which are in the app. --dry-run prints the script.
int submit_launch(const CLI::App& app, cluster::LaunchOptions options, const CommandCheck& check_command) {
  config::launch_table().check(options);
  if (!options.hosts.slurm) bad_input("--submit works only with Slurm: add --slurm");
  if (!options.submit.nodes) bad_input("--submit needs --nodes N, the number of nodes to request from Slurm");
  const auto nodes = static_cast<int>(*options.submit.nodes);
  const auto places = static_cast<int>(nodes * options.submit.tasks_per_node);
  cluster::check_places(options, nodes, places);
  options.workers = options.workers.value_or(places);
  cluster::check_launch(options, check_command);
  const std::string script = script_text(app, options);
  if (options.dry_run) {
    fmt::print("{}", script);
    return 0;
  }
  std::string job = cluster::command_output({"sbatch", "--parsable"}, script);
  job.erase(std::min(job.find_first_of(";\n"), job.size()));  // "id;cluster"
  fmt::print("trireme: submitted job {}; its output goes to {}; to cancel it: scancel {}\n", job,
             output_path(options.submit, job), job);
  return 0;
}

void check_not_submitted(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->get_group() == config::kSubmitGroup) {
      bad_input("{} has no effect without --submit: the allocation decides the nodes", option->get_name());
    }
  }
}

int run_launch(const cluster::LaunchOptions& options, const CommandCheck& check_command) {
  const cluster::LaunchPlan plan = cluster::plan_launch(options, check_command);
  std::fputs(cluster::placement_text(plan).c_str(), stderr);
  if (options.dry_run) {
    std::fputs(cluster::commands_text(plan).c_str(), stdout);
    return 0;
  }
  cluster::SupervisorOptions supervision;
  supervision.program = cluster::this_binary();
  supervision.console.output_folder = options.output_folder;
  supervision.record_file = plan.record_file;
  return cluster::supervise(plan.job, plan.starter, supervision);
}

}  // namespace

Command add_launch(CLI::App& parent, const CommandCheck& check_command) {
  CLI::App* app = parent.add_subcommand(
      "launch",
      "Start a command in several processes, as in: trireme launch --workers 2 -- bench --model resnet50.\n"
      "Cores are divided among the workers, output lines start with the rank, and if one process fails, all end.");
  auto options = std::make_shared<cluster::LaunchOptions>();
  add_config_option(*app);
  add_table(*app, config::launch_table(), *options);
  app->add_option("command", options->command, "After --: a command of trireme with its options");
  return {app, [app, options, check_command] {
            if (options->submit.submit) return submit_launch(*app, *options, check_command);
            check_not_submitted(*app);
            return run_launch(*options, check_command);
          }};
}

}  // namespace trireme::cli
