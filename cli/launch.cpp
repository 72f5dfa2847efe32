// `trireme launch`: starts a command on several processes, of this machine or of several hosts, and looks after them.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/config_file.hpp"
#include "cli/launch_plan.hpp"
#include "cli/launch_slurm.hpp"
#include "trireme/cluster/supervisor.hpp"

namespace trireme::cli {
namespace {

int run_launch(LaunchOptions options, const CommandCheck& check_command) {
  if (options.hosts.slurm) take_allocation(options);
  const LaunchPlan plan = plan_launch(options, check_command);
  std::fputs(placement_text(plan).c_str(), stderr);
  if (options.dry_run) {
    std::fputs(commands_text(plan).c_str(), stdout);
    return 0;
  }
  return cluster::supervise(plan.job, plan.starter,
                            {.program = this_binary(), .console = {.output_folder = options.output_folder}});
}

void add_host_options(CLI::App& app, HostOptions& options) {
  const std::string group = "Other hosts";
  app.add_option("--hosts", options.hosts,
                 "Run on these hosts, reached by ssh, with so many workers each: a:2,b:2; or a,b: divided evenly")
      ->group(group);
  app.add_option("--hostfile", options.hostfile, "The same from a file, a host on each line: a, a:2 or a slots=2")
      ->group(group);
  app.add_option("--public-ips", options.public_addresses,
                 "The same from two files, an address on each line, line by line the same host: where ssh\n"
                 "reaches it,")
      ->group(group);
  app.add_option("--private-ips", options.private_addresses, "and where the tasks of the other hosts do")->group(group);
  app.add_option("--ssh-key", options.ssh.key, "Private key for ssh (default: as ssh finds it)")->group(group);
  app.add_option("--ssh-user", options.ssh.user, "User on the hosts")->group(group);
  app.add_option("--ssh-port", options.ssh.port, "Port of the hosts' sshd")->group(group);
  app.add_option("--ssh-config", options.ssh.config, "Configuration file of ssh")->group(group);
  app.add_option("--network", options.network,
                 "Network that the tasks talk over: an interface, eth0, or a range, 10.0.0.0/8\n"
                 "(default: where ssh reaches the hosts; where that is not one network, the first that all have)")
      ->group(group);
  app.add_flag("--ship", options.ship, "Copy this trireme and its libraries to the hosts that do not have them yet")
      ->group(group);
  app.add_option("--ship-dir", options.ship_folder, "Folder on the hosts for that (default: ~/.cache/trireme/ship)")
      ->group(group);
  app.add_option("--exec", options.exec,
                 "Run trireme on the hosts in a container: what comes before its command there, as in\n"
                 "\"apptainer exec image.sif\" or \"podman run --rm -i --network host image\"")
      ->group(group);
  app.add_option("--remote-program", options.remote_program,
                 "Where trireme is on the hosts (default: as here;\nwith --exec as the container finds it)")
      ->group(group);
}

}  // namespace

Command add_launch(CLI::App& parent, const CommandCheck& check_command) {
  CLI::App* app = parent.add_subcommand(
      "launch",
      "Start a command on several processes, as in: trireme launch --workers 2 -- bench --model resnet50.\n"
      "Cores are divided over the workers, lines of output carry the rank, and when one fails all end.");
  auto options = std::make_shared<LaunchOptions>();
  app->add_option("--workers", options->workers,
                  "Workers to start (default, on other hosts: as many as their list or Slurm says, else one on each)");
  app->add_option("--ps", options->tasks.cores.servers, "Parameter servers to start beside them")
      ->capture_default_str();
  app->add_option("--threads-per-worker", options->tasks.cores.cores_per_worker,
                  "Cores for each worker (default: all usable ones, divided evenly)");
  app->add_option("--threads-per-ps", options->tasks.cores.cores_per_server,
                  "Cores for each parameter server alone, taken before the workers'; 0: they share the\n"
                  "workers' (default: 1 where there are at least 8 cores per server, else 0)");
  app->add_flag("--oversubscribe", options->tasks.cores.oversubscribe, "Allow more tasks than there are cores for");
  app->add_option("--worker-port", options->tasks.worker_port,
                  "Port of the first worker where workers meet over gRPC; the others follow\n"
                  "(default: the first free ones from 2220 on)");
  app->add_option("--ps-port", options->tasks.ps_port, "Likewise of the parameter servers (default: from 2230 on)");
  add_config_option(*app);
  add_host_options(*app, options->hosts);
  auto submit = std::make_shared<SubmitOptions>();
  add_slurm_options(*app, *options, *submit);
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
  return {app, [app, options, submit, check_command] {
            if (submit->submit) return submit_launch(*app, *options, *submit, check_command);
            check_not_submitted(*app);
            return run_launch(*options, check_command);
          }};
}

}  // namespace trireme::cli
