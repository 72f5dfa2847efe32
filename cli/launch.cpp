// `trireme launch`: starts a command on several processes of this machine and looks after them. Also the two hidden
// commands that it starts: the runner beside each task and the guard beside the launcher.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/core_division.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/supervisor.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/comm/host.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cli {
namespace {

struct LaunchOptions {
  cluster::CoreDemand demand;
  std::string starter = "mpi";
  std::string program;  // empty: this binary
  std::string output_folder;
  bool dry_run = false;
  std::vector<std::string> command;
};

std::string this_binary() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// Everything that can be known to be wrong before a process is started.
void check(const LaunchOptions& options, const CommandCheck& check_command) {
  if (const std::string launcher = cluster::surrounding_launcher(); !launcher.empty()) {
    bad_input("this process was itself started by {} as one of several; run the command without launch", launcher);
  }
  if (options.starter != "mpi" && options.starter != "process") {
    bad_input("--starter {}: must be one of mpi, process", options.starter);
  }
  if (!options.program.empty()) {
    if (cluster::find_program(options.program).empty()) {
      bad_input("--program {}: there is no such program, or it cannot be run", options.program);
    }
    return;
  }
  if (options.command.empty()) {
    bad_input(
        "nothing to launch; give the command after --, as in: trireme launch --workers 2 -- bench --model resnet50");
  }
  if (options.command.front() == "launch") bad_input("a launch cannot be launched; give the command itself after --");
  check_command(options.command);
  const auto protocols = comm::protocol_names();
  if (options.starter == "mpi" && std::find(protocols.begin(), protocols.end(), "mpi") == protocols.end()) {
    fail(ErrorKind::unavailable,
         "this build has no MPI, so workers could not talk to each other: install libopenmpi-dev and build again, or "
         "start workers that do not talk with --starter process");
  }
}

// Workers that share cores must not bind threads to them, and must give way when they wait.
std::map<std::string, std::string> sharing_environment(int threads) {
  return {{"TRIREME_BIND", "off"},
          {"TRIREME_NUM_INTRA_THREADS", std::to_string(threads)},
          {"OMP_NUM_THREADS", std::to_string(threads)},
          {"OMP_WAIT_POLICY", "passive"}};
}

cluster::Job make_job(const LaunchOptions& options, const cluster::CoreDivision& cores) {
  std::vector<std::string> command{options.program.empty() ? this_binary() : cluster::find_program(options.program)};
  command.insert(command.end(), options.command.begin(), options.command.end());
  cluster::Job job;
  for (int rank = 0; rank < options.demand.tasks; ++rank) {
    cluster::Task task{.role = cluster::kWorkerRole,
                       .index = rank,
                       .host = comm::host_name(),
                       .processors = cores.processors[static_cast<std::size_t>(rank)],
                       .command = command,
                       .environment = {}};
    if (cores.shared) task.environment = sharing_environment(cores.cores_per_task);
    task.environment[cluster::kTaskRoleVariable] = task.role;
    task.environment[cluster::kTaskIndexVariable] = std::to_string(rank);
    task.environment[cluster::kTaskCountVariable] = std::to_string(options.demand.tasks);
    if (rank == 0 && isatty(STDERR_FILENO) != 0) task.environment[cluster::kProgressVariable] = "terminal";
    job.tasks.push_back(std::move(task));
  }
  return job;
}

std::string placement_text(const cluster::Job& job, const cluster::CoreDivision& cores) {
  std::string text = "trireme: " + cluster::describe(job);
  text.pop_back();
  if (cores.shared) text += fmt::format("; they share the cores, {} thread(s) each", cores.cores_per_task);
  if (cores.idle_cores > 0) text += fmt::format("; {} core(s) idle", cores.idle_cores);
  return text + "\n";
}

std::string quoted(const std::string& word) {
  constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string result = "'";
  for (const char c : word) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

std::string shell_text(const std::map<std::string, std::string>& environment, const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (const auto& [name, value] : environment) words.push_back(name + "=" + quoted(value));
  for (const std::string& word : command) words.push_back(quoted(word));
  return fmt::format("{}", fmt::join(words, " "));
}

void print_plan(const cluster::Job& job, const cluster::Starter& starter) {
  fmt::print("to be started:\n");
  for (const auto& start : starter(job, "PRIVATE_FOLDER")) {
    fmt::print("  {}\n", shell_text(start.environment, start.command));
  }
  fmt::print("which runs:\n");
  for (std::size_t i = 0; i < job.tasks.size(); ++i) {
    fmt::print("  {}{}\n", job.prefix(static_cast<int>(i)), shell_text(job.tasks[i].environment, job.tasks[i].command));
  }
}

int run_launch(const LaunchOptions& options, const CommandCheck& check_command) {
  check(options, check_command);
  const cluster::CoreDivision cores = cluster::divide_this_machine(options.demand);
  const cluster::Job job = make_job(options, cores);
  const cluster::Starter starter =
      options.starter == "mpi" ? cluster::mpi_starter(this_binary()) : cluster::process_starter(this_binary());
  std::fputs(placement_text(job, cores).c_str(), stderr);
  if (options.dry_run) {
    print_plan(job, starter);
    return 0;
  }
  cluster::Supervisor supervisor(job, starter,
                                 {.program = this_binary(), .console = {.output_folder = options.output_folder}});
  return supervisor.run();
}

std::string launcher_address() {
  const char* address = std::getenv(cluster::kLaunchVariable);
  if (address == nullptr) bad_input("this command is for `trireme launch` to start");
  return address;
}

}  // namespace

Command add_launch(CLI::App& parent, const CommandCheck& check_command) {
  CLI::App* app = parent.add_subcommand(
      "launch",
      "Start a command on several processes, as in: trireme launch --workers 2 -- bench --model resnet50.\n"
      "Cores are divided over the workers, lines of output carry the rank, and when one fails all end.");
  auto options = std::make_shared<LaunchOptions>();
  app->add_option("--workers", options->demand.tasks, "Processes to start")->required();
  app->add_option("--threads-per-worker", options->demand.cores_per_task,
                  "Cores for each worker (default: all usable ones, divided evenly)");
  app->add_flag("--oversubscribe", options->demand.oversubscribe, "Allow more workers than there are cores for");
  app->add_option("--output-dir", options->output_folder,
                  "Folder for the whole output of each worker, beside what is shown:\nrank-R.out and rank-R.err");
  app->add_option("--starter", options->starter,
                  "Who starts the workers: mpi (mpirun, for workers that talk to each other)\n"
                  "or process (each by itself)")
      ->capture_default_str();
  app->add_option("--program", options->program, "Run this program instead of trireme, with what comes after --");
  app->add_flag("--dry-run", options->dry_run, "Show what would be started, and where, and start nothing");
  app->add_option("command", options->command, "After --: a command of trireme with its options");
  return {app, [options, check_command] { return run_launch(*options, check_command); }};
}

Command add_launch_task(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("launch-task", "Runs one task of a launch")->group("");
  struct Options {
    int task = -1, first_task = -1;
  };
  auto options = std::make_shared<Options>();
  app->add_option("--task", options->task, "Index of the task");
  app->add_option("--first-task", options->first_task, "Index of rank 0's task; the others follow");
  return {app, [options] {
            const int task = options->task >= 0 ? options->task : options->first_task + comm::launch_place().rank;
            cluster::run_task(launcher_address(), task);
            return 0;
          }};
}

Command add_launch_guard(CLI::App& parent) {
  CLI::App* app = parent.add_subcommand("launch-guard", "Ends what a killed launch has left")->group("");
  struct Options {
    std::string mark, folder;
  };
  auto options = std::make_shared<Options>();
  app->add_option("mark", options->mark)->required();
  app->add_option("folder", options->folder)->required();
  return {app, [options] {
            cluster::run_guard(options->mark, options->folder);
            return 0;
          }};
}

}  // namespace trireme::cli
