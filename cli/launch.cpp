// `trireme launch`: starts a command on several processes of this machine and looks after them. Also the two hidden
// commands that it starts: the runner beside each task and the guard beside the launcher.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/launch_plan.hpp"
#include "trireme/base/error.hpp"
#include "trireme/cluster/cleanup.hpp"
#include "trireme/cluster/environment.hpp"
#include "trireme/cluster/supervisor.hpp"
#include "trireme/cluster/task_runner.hpp"
#include "trireme/comm/world.hpp"

namespace trireme::cli {
namespace {

int run_launch(const LaunchOptions& options, const CommandCheck& check_command) {
  const LaunchPlan plan = plan_launch(options, check_command);
  std::fputs(placement_text(plan).c_str(), stderr);
  if (options.dry_run) {
    std::fputs(commands_text(plan).c_str(), stdout);
    return 0;
  }
  cluster::Supervisor supervisor(plan.job, plan.starter,
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
  app->add_option("--workers", options->demand.workers, "Workers to start")->required();
  app->add_option("--ps", options->demand.servers, "Parameter servers to start beside them")->capture_default_str();
  app->add_option("--threads-per-worker", options->demand.cores_per_worker,
                  "Cores for each worker (default: all usable ones, divided evenly)");
  app->add_option("--threads-per-ps", options->demand.cores_per_server,
                  "Cores for each parameter server alone, taken before the workers'; 0: they share the\n"
                  "workers' (default: 1 where there are at least 8 cores per server, else 0)");
  app->add_flag("--oversubscribe", options->demand.oversubscribe, "Allow more tasks than there are cores for");
  app->add_option("--worker-port", options->worker_port,
                  "Port of the first worker where workers meet over gRPC; the others follow\n"
                  "(default: the first free ones from 2220 on)");
  app->add_option("--ps-port", options->ps_port, "Likewise of the parameter servers (default: from 2230 on)");
  app->add_option("--output-dir", options->output_folder,
                  "Folder for the whole output of each task, beside what is shown: rank-R.out and\n"
                  "rank-R.err; with servers worker-I.out, ps-I.out, ...");
  app->add_option("--starter", options->starter,
                  "Who starts the tasks: mpi (mpirun, for tasks that talk MPI), process (each by\n"
                  "itself), or auto: what the command needs")
      ->capture_default_str();
  app->add_option("--program", options->program, "Run this program instead of trireme, with what comes after --");
  app->add_flag("--keep-going", options->keep_going,
                "With --program: the loss of a worker does not end the job while others run");
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
