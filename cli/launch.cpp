// `trireme launch`: starts a command as several processes, on this machine or several hosts, and supervises them; or
// submits the same as a Slurm job.
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/shell_text.hpp"
#include "trireme/cluster/child_process.hpp"
#include "trireme/cluster/launch_plan.hpp"
#include "trireme/cluster/slurm.hpp"
#include "trireme/cluster/supervisor.hpp"

namespace trireme::cli {
namespace {

struct SubmitOptions {
  bool submit = false;
  int nodes = 0;
  int tasks_per_node = 0;  // workers on each; 0: one
  int cpus_per_task = 0;   // 0: whole nodes
  std::string time, partition, account, constraint, job_name;
  std::vector<std::string> more;  // more sbatch options
};

constexpr const char* kSubmitGroup = "Slurm jobs, with --submit";
constexpr const char* kOutputFile = "slurm-%j.out";
// Slurm asks the launch to end 30 s before its time is up, so that results are written.
constexpr const char* kSignalAtEnd = "B:TERM@30";

void check_tasks(const cluster::LaunchOptions& options, int nodes, int places) {
  const int workers = options.workers.value_or(places), servers = options.tasks.cores.servers;
  if (workers > places) {
    bad_input(
        "--workers {}: {} Slurm node{} hold{} {} worker{}; request more nodes, or more tasks per node "
        "(--ntasks-per-node)",
        workers, nodes, nodes == 1 ? "" : "s", nodes == 1 ? "s" : "", places, places == 1 ? "" : "s");
  }
  if (servers > workers) {
    bad_input("--ps {}: servers run beside workers, so there can be at most as many as workers ({})", servers, workers);
  }
}

void check_submit(const SubmitOptions& submit) {
  if (submit.nodes < 1) bad_input("--submit needs --nodes N, the number of nodes to request from Slurm");
  for (const auto& [option, value] :
       {std::pair("--ntasks-per-node", submit.tasks_per_node), std::pair("--cpus-per-task", submit.cpus_per_task)}) {
    if (value < 0) bad_input("{} {}: must be at least 1", option, value);
  }
}

// As given by the user, without sbatch options and without the command after --.
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
std::string script_text(const CLI::App& app, const cluster::LaunchOptions& options, const SubmitOptions& submit) {
  std::string text = "#!/bin/bash\n";
  for (const std::string& option : sbatch_options(submit)) {
    if (option.find('\n') != std::string::npos) bad_input("'{}': an sbatch option must be on one line", option);
    text += fmt::format("#SBATCH {}\n", shell_quoted(option));
  }
  std::vector<std::string> words{cluster::this_binary(), "launch"};
  for (const auto& part : {launch_words(app), {"--"}, options.command})
    words.insert(words.end(), part.begin(), part.end());
  return text + fmt::format("exec {}\n", shell_line(words));
}

std::string output_path(const SubmitOptions& submit, const std::string& job) {
  std::string name = kOutputFile;
  for (const std::string& option : submit.more) {
    if (option.starts_with("--output=")) name = option.substr(option.find('=') + 1);
  }
  if (const std::size_t place = name.find("%j"); place != std::string::npos) name.replace(place, 2, job);
  return std::filesystem::absolute(name).string();
}

void add_slurm_options(CLI::App& app, cluster::LaunchOptions& options, SubmitOptions& submit) {
  const OptionGroup slurm(app, "Slurm");
  app.add_flag("--slurm", options.hosts.slurm,
               "Run on the nodes of the current Slurm allocation (salloc, sbatch), with one worker per node or, if\n"
               "tasks were requested, one per task");
  app.add_option("--mpi", options.hosts.mpi_plugin,
                 "How Slurm connects tasks that use MPI: pmix (Open MPI) or pmi2 (MPICH)")
      ->capture_default_str();
  const OptionGroup submitting(app, kSubmitGroup);
  app.add_flag("--submit", submit.submit, "Submit a batch job that runs this launch instead of running it now");
  app.add_option("--nodes", submit.nodes, "Number of nodes to request");
  app.add_option("--time", submit.time, "Time limit to request, in sbatch's format: minutes, 10:00, 1-12:00:00");
  app.add_option("--partition", submit.partition, "Partition to run in");
  app.add_option("--account", submit.account, "Account to charge");
  app.add_option("--constraint", submit.constraint, "Features that the nodes must have");
  app.add_option("--job-name", submit.job_name, "Name of the job (default: trireme)");
  app.add_option("--ntasks-per-node", submit.tasks_per_node, "Workers on each node (default: 1)");
  app.add_option("--cpus-per-task", submit.cpus_per_task,
                 "Processors per worker (default: whole nodes for this job alone)");
  app.add_option("--sbatch", submit.more, "Another option of sbatch, such as --sbatch=--gres=gpu:1; may be repeated")
      ->allow_extra_args(false);
}

// Inside of an allocation the nodes and the number of workers are its own.
void take_allocation(cluster::LaunchOptions& options) {
  const cluster::SlurmAllocation allocation = cluster::read_slurm_allocation();
  options.hosts.allocated = allocation.nodes;
  check_tasks(options, static_cast<int>(allocation.nodes.size()), cluster::usual_workers(allocation.nodes));
}

// A launch that is to be submitted becomes a batch script, which is handed to sbatch and holds the same launch: with
// the options that the user has given, which are in the app. --dry-run prints the script.
int submit_launch(const CLI::App& app, cluster::LaunchOptions options, const SubmitOptions& submit,
                  const CommandCheck& check_command) {
  if (!options.hosts.slurm) bad_input("--submit works only with Slurm: add --slurm");
  check_submit(submit);
  const int places = submit.nodes * std::max(1, submit.tasks_per_node);
  check_tasks(options, submit.nodes, places);
  options.tasks.cores.workers = options.workers.value_or(places);
  cluster::check_launch(options, check_command);
  const std::string script = script_text(app, options, submit);
  if (options.dry_run) {
    fmt::print("{}", script);
    return 0;
  }
  std::string job = cluster::command_output({"sbatch", "--parsable"}, script);
  job.erase(std::min(job.find_first_of(";\n"), job.size()));  // "id;cluster"
  fmt::print("trireme: submitted job {}; its output goes to {}; to cancel it: scancel {}\n", job,
             output_path(submit, job), job);
  return 0;
}

void check_not_submitted(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->count() > 0 && option->get_group() == kSubmitGroup) {
      bad_input("{} has no effect without --submit: the allocation decides the nodes", option->get_name());
    }
  }
}

int run_launch(cluster::LaunchOptions options, const CommandCheck& check_command) {
  if (options.hosts.slurm) take_allocation(options);
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

void add_host_options(CLI::App& app, cluster::HostOptions& options) {
  const OptionGroup group(app, "Other hosts");
  app.add_option("--hosts", options.hosts,
                 "Run on these hosts over ssh, with the given number of workers each: a:2,b:2; or divided evenly: a,b");
  app.add_option("--hostfile", options.hostfile, "Read the hosts from a file, one per line: a, a:2 or a slots=2");
  app.add_option("--public-ips", options.public_addresses,
                 "Read the hosts from a file, one address per line: where ssh reaches them; goes with\n"
                 "--private-ips");
  app.add_option("--private-ips", options.private_addresses,
                 "File with their addresses for the tasks of other hosts, in the same order");
  app.add_option("--ssh-key", options.ssh.key, "Private key for ssh (default: ssh's own choice)");
  app.add_option("--ssh-user", options.ssh.user, "User on the hosts");
  app.add_option("--ssh-port", options.ssh.port, "Port of the hosts' sshd");
  app.add_option("--ssh-config", options.ssh.config, "Configuration file for ssh");
  app.add_option("--network", options.network,
                 "Network that connects the tasks: an interface such as eth0, or a range such as 10.0.0.0/8\n"
                 "(default: the one that ssh uses; if that is not a single network, the first that all hosts share)");
  app.add_flag("--ship", options.ship, "Copy this trireme and its libraries to hosts that do not have them yet");
  app.add_option("--ship-dir", options.ship_folder, "Folder on the hosts for --ship (default: ~/.cache/trireme/ship)");
  app.add_option("--exec", options.exec,
                 "Run trireme on the hosts in a container: the words to put before its command there, such as\n"
                 "\"apptainer exec image.sif\" or \"podman run --rm -i --network host image\"");
  app.add_option("--remote-program", options.remote_program,
                 "Path of trireme on the hosts (default: the same as here;\n"
                 "with --exec, as found in the container)");
}

}  // namespace

Command add_launch(CLI::App& parent, const CommandCheck& check_command) {
  CLI::App* app = parent.add_subcommand(
      "launch",
      "Start a command in several processes, as in: trireme launch --workers 2 -- bench --model resnet50.\n"
      "Cores are divided among the workers, output lines start with the rank, and if one process fails, all end.");
  auto options = std::make_shared<cluster::LaunchOptions>();
  app->add_option(
      "--workers", options->workers,
      "Number of workers (default on other hosts: as many as their list or Slurm says, otherwise one on each)");
  app->add_option("--ps", options->tasks.cores.servers, "Number of parameter servers")->capture_default_str();
  app->add_option("--threads-per-worker", options->tasks.cores.cores_per_worker,
                  "Cores for each worker (default: all usable ones, divided evenly)");
  app->add_option("--threads-per-ps", options->tasks.cores.cores_per_server,
                  "Cores reserved for each parameter server, taken before the workers'; 0: share the\n"
                  "workers' (default: 1 if there are at least 8 cores per server, otherwise 0)");
  app->add_flag("--oversubscribe", options->tasks.cores.oversubscribe, "Allow more tasks than the cores can hold");
  app->add_option("--worker-port", options->tasks.worker_port,
                  "Port of the first worker if workers connect over gRPC; the others use the next ports\n"
                  "(default: the first free ports from 2220)");
  app->add_option("--ps-port", options->tasks.ps_port, "The same for parameter servers (default: from 2230)");
  add_config_option(*app);
  add_host_options(*app, options->hosts);
  auto submit = std::make_shared<SubmitOptions>();
  add_slurm_options(*app, *options, *submit);
  app->add_option("--output-dir", options->output_folder,
                  "Folder for the full output of each task, in addition to what is shown: rank-R.out and\n"
                  "rank-R.err; with servers worker-I.out, ps-I.out, ...");
  app->add_option("--starter", options->starter,
                  "What starts the tasks: mpi (mpirun, for tasks that use MPI), process (each on its\n"
                  "own), or auto (what the command needs)")
      ->capture_default_str();
  app->add_option("--program", options->program, "Run this program instead of trireme, with the arguments after --");
  app->add_flag("--keep-going", options->keep_going,
                "With --program: losing a worker does not end the job while others run");
  app->add_flag("--dry-run", options->dry_run, "Show what would be started, and where, without starting it");
  app->add_option("command", options->command, "After --: a command of trireme with its options");
  return {app, [app, options, submit, check_command] {
            if (submit->submit) return submit_launch(*app, *options, *submit, check_command);
            check_not_submitted(*app);
            return run_launch(*options, check_command);
          }};
}

}  // namespace trireme::cli
