#include "cli/launch_slurm.hpp"

#include <fmt/ranges.h>

#include <filesystem>

#include "trireme/base/error.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/shell_text.hpp"
#include "trireme/cluster/slurm.hpp"

namespace trireme::cli {
namespace {

constexpr const char* kSubmitGroup = "Slurm jobs, with --submit";
constexpr const char* kOutputFile = "slurm-%j.out";
// Before the end of its time the launch is asked to end, so that results are written.
constexpr const char* kSignalAtEnd = "B:TERM@30";

void check_tasks(const LaunchOptions& options, int nodes, int places) {
  const int workers = options.workers.value_or(places), servers = options.tasks.cores.servers;
  if (workers > places) {
    bad_input(
        "--workers {}: {} node{} of Slurm take{} {} worker{}; ask for more nodes, or for more tasks on each "
        "(--ntasks-per-node)",
        workers, nodes, nodes == 1 ? "" : "s", nodes == 1 ? "s" : "", places, places == 1 ? "" : "s");
  }
  if (servers > workers) {
    bad_input("--ps {}: servers run beside workers, at most as many as there are workers ({})", servers, workers);
  }
}

void check_submit(const SubmitOptions& submit) {
  if (submit.nodes < 1) bad_input("--submit needs --nodes N: how many nodes to ask Slurm for");
  for (const auto& [option, value] :
       {std::pair("--ntasks-per-node", submit.tasks_per_node), std::pair("--cpus-per-task", submit.cpus_per_task)}) {
    if (value < 0) bad_input("{} {}: must be at least 1", option, value);
  }
}

// As the user has given them, without what is sbatch's; the command after -- not among them.
std::vector<std::string> launch_words(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    const bool is_for_us = option->get_group() == kSubmitGroup || name == "--dry-run";
    if (option->count() == 0 || option->get_positional() || is_for_us) continue;
    if (option->get_items_expected_max() == 0) {
      words.push_back(name);
    } else {
      for (const std::string& value : option->results()) words.push_back(name + "=" + value);
    }
  }
  return words;
}

std::vector<std::string> sbatch_options(const SubmitOptions& submit) {
  std::vector<std::string> options;
  const auto add = [&options](const char* name, const std::string& value) {
    if (!value.empty()) options.push_back(fmt::format("{}={}", name, value));
  };
  add("--job-name", submit.job_name.empty() ? "trireme" : submit.job_name);
  add("--nodes", std::to_string(submit.nodes));
  add("--ntasks-per-node", std::to_string(std::max(1, submit.tasks_per_node)));
  if (submit.cpus_per_task > 0) {
    add("--cpus-per-task", std::to_string(submit.cpus_per_task));
  } else {
    options.emplace_back("--exclusive");
  }
  add("--time", submit.time);
  add("--partition", submit.partition);
  add("--account", submit.account);
  add("--constraint", submit.constraint);
  add("--output", kOutputFile);
  add("--signal", kSignalAtEnd);
  options.insert(options.end(), submit.more.begin(), submit.more.end());
  return options;
}

// The launch takes the shell's place: it is the process that Slurm asks to end.
std::string script_text(const CLI::App& app, const LaunchOptions& options, const SubmitOptions& submit) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& option : sbatch_options(submit)) {
    if (option.find('\n') != std::string::npos) bad_input("'{}': an option of sbatch has one line", option);
    text += fmt::format("#SBATCH {}\n", cluster::shell_quoted(option));
  }
  std::vector<std::string> words{this_binary(), "launch"};
  for (const auto& part : {launch_words(app), {"--"}, options.command})
    words.insert(words.end(), part.begin(), part.end());
  return text + fmt::format("exec {}\n", cluster::shell_line(words));
}

std::string output_path(const SubmitOptions& submit, const std::string& job) {
  std::string name = kOutputFile;
  for (const std::string& option : submit.more) {
    if (option.starts_with("--output=")) name = option.substr(option.find('=') + 1);
  }
  if (const std::size_t place = name.find("%j"); place != std::string::npos) name.replace(place, 2, job);
  return std::filesystem::absolute(name).string();
}

}  // namespace

void add_slurm_options(CLI::App& app, LaunchOptions& options, SubmitOptions& submit) {
  app.add_flag("--slurm", options.hosts.slurm,
               "Run on the nodes of the allocation of Slurm that this is in (salloc, sbatch): one worker per node\n"
               "or, where tasks were asked for, as many")
      ->group("Slurm");
  app.add_option("--mpi", options.hosts.mpi_plugin,
                 "How Slurm joins tasks that talk MPI: pmix (Open MPI) or pmi2 (MPICH)")
      ->capture_default_str()
      ->group("Slurm");
  app.add_flag("--submit", submit.submit, "Do not run now: submit a batch job that runs this launch")
      ->group(kSubmitGroup);
  const auto add = [&app](const char* name, auto& value, const char* description) {
    app.add_option(name, value, description)->group(kSubmitGroup);
  };
  add("--nodes", submit.nodes, "Nodes to ask for");
  add("--time", submit.time, "Time to ask for, as sbatch has it: minutes, 10:00, 1-12:00:00");
  add("--partition", submit.partition, "Partition to run in");
  add("--account", submit.account, "Account to charge");
  add("--constraint", submit.constraint, "Features that the nodes must have");
  add("--job-name", submit.job_name, "Name of the job (default: trireme)");
  add("--ntasks-per-node", submit.tasks_per_node, "Workers on each node (default: 1)");
  add("--cpus-per-task", submit.cpus_per_task, "Processors for each of them (default: nodes for this job alone)");
  app.add_option("--sbatch", submit.more, "A further option of sbatch, as in --sbatch=--gres=gpu:1; may be repeated")
      ->allow_extra_args(false)
      ->group(kSubmitGroup);
}

void take_allocation(LaunchOptions& options) {
  const cluster::SlurmAllocation allocation = cluster::read_slurm_allocation();
  options.hosts.allocated = allocation.nodes;
  check_tasks(options, static_cast<int>(allocation.nodes.size()), cluster::usual_workers(allocation.nodes));
}

int submit_launch(const CLI::App& app, LaunchOptions options, const SubmitOptions& submit,
                  const CommandCheck& check_command) {
  if (!options.hosts.slurm) bad_input("--submit is for jobs of Slurm: add --slurm");
  check_submit(submit);
  const int places = submit.nodes * std::max(1, submit.tasks_per_node);
  check_tasks(options, submit.nodes, places);
  options.tasks.cores.workers = options.workers.value_or(places);
  check_launch(options, check_command);
  const std::string script = script_text(app, options, submit);
  if (options.dry_run) {
    fmt::print("{}", script);
    return 0;
  }
  std::string job = cluster::command_output({"sbatch", "--parsable"}, script);
  job.erase(std::min(job.find_first_of(";\n"), job.size()));  // "id;cluster"
  fmt::print("trireme: job {} is submitted; its output goes to {}; scancel {} ends it\n", job, output_path(submit, job),
             job);
  return 0;
}

void check_not_submitted(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->get_group() == kSubmitGroup) {
      bad_input("{} has no effect without --submit: the nodes are those of the allocation", option->get_name());
    }
  }
}

}  // namespace trireme::cli
